#include "limiter/redis/client/link.hpp"

#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <random>

namespace headgate::limiter::redis {

namespace {

using std::chrono::microseconds;

constexpr std::size_t read_bytes = 16 * 1024;
// The connection to a server that owes replies and has sent no whole one for this time is closed: a new one may work.
// Bytes alone do not count, because they may all be part of one reply whose length was damaged on the way.
constexpr microseconds longest_silence{1'000'000};

} // namespace

std::string_view name_of(failure f)
{
    constexpr std::string_view names[] = {"none", "timeout", "unreachable", "broken", "overloaded"};
    return names[static_cast<std::size_t>(f)];
}

void link::counters::add(const counters& more)
{
    connected += more.connected;
    failed_attempts += more.failed_attempts;
    broken += more.broken;
    timeouts += more.timeouts;
    late_replies += more.late_replies;
    rests += more.rests;
}

link::link(event_loop& loop, name_resolver& names, link_options options, listener on_change)
    : loop_(loop), names_(names), options_(std::move(options)), on_change_(std::move(on_change)),
      socket_(loop.get_executor()), in_(read_bytes), alarm_(loop.get_executor()), pause_(loop.get_executor()),
      random_(std::random_device{}())
{}

link::~link() { loop_.forget(*this); }

void link::subscribe(std::string channel, std::function<void(std::string_view message)> on_message)
{
    channel_ = std::move(channel);
    on_message_ = std::move(on_message);
}

void link::begin() { spawn(loop_.get_executor(), run(shared_from_this())); }

void link::stop()
{
    if (state_ == state::stopped)
        return;
    why_ = "stopped";
    become(state::stopped);
    close_socket();
    alarm_.cancel();
    pause_.cancel();
    looked_up_.notify_later(loop_.get_executor());
}

void link::become(state next)
{
    if (state_ == next)
        return;
    state_ = next;
    if (next == state::resting)
        ++seen_.rests;
    if (on_change_)
        on_change_(next, why_);
}

// ---- commands

failure link::why_not_now() const
{
    if (state_ != state::ready)
        return failure::unreachable;
    return requests_ < options_.most_pending ? failure::none : failure::overloaded;
}

// Its reply is dropped: an error would also be the reply to the command that follows.
void link::append_asking()
{
    out_ += "*1\r\n$6\r\nASKING\r\n";
    pending_.push_back({{}, loop_.turn_began(), {}, 0});
}

void link::enqueue(reply_handler handler, steady_time deadline, std::size_t requests)
{
    pending_.push_back({std::move(handler), loop_.turn_began(), deadline, requests});
    ++awaited_;
    requests_ += requests;
    if (!is_sending_)
        send_soon();
    if (!std::exchange(is_watching_deadlines_, true))
        spawn(loop_.get_executor(), watch_deadlines(shared_from_this()));
    else if (deadline < alarm_.expiry())
        alarm_.cancel(); // it is set again
}

link::pending_command link::take_first()
{
    pending_command first(std::move(pending_.front()));
    pending_.pop_front();
    requests_ -= first.requests;
    return first;
}

// Resumes the waiting coroutine inside this call. It may send more commands, and it may stop the link.
void link::complete(pending_command& command, failure failed)
{
    reply_handler handler;
    handler.swap(command.handler);
    if (!handler)
        return;
    --awaited_;
    std::move(handler)(answer{failed, reader_.get()});
}

void link::on_turn_end()
{
    if (!is_sending_ && !has_send_failed_ && socket_.is_open() && !out_.empty())
        send();
}

void link::send()
{
    is_sending_ = true;
    sending_.swap(out_);
    auto sent = [keep = shared_from_this()](error_code error, std::size_t) { keep->on_sent(error); };
    if (tls_)
        asio::async_write(*tls_, asio::buffer(sending_), std::move(sent));
    else
        asio::async_write(socket_, asio::buffer(sending_), std::move(sent));
}

// An error does not close the connection: what the server sent before it closed, such as a TLS alert that says why, is
// still to be read. Reading ends soon after it.
void link::on_sent(error_code error)
{
    is_sending_ = false;
    sending_.clear();
    has_send_failed_ = static_cast<bool>(error);
    if (!error && !out_.empty())
        send_soon();
    sent_.notify();
}

// ---- replies

task<void> link::read_replies()
{
    for (;;) {
        io_result got;
        if (tls_) {
            const auto [error, bytes] = co_await tls_->async_read_some(asio::buffer(in_), as_result);
            got = {error, bytes};
        } else {
            const auto [error, bytes] = co_await socket_.async_read_some(asio::buffer(in_), as_result);
            got = {error, bytes};
        }
        if (got.error) {
            note_end(got.error);
            co_return;
        }
        if (!socket_.is_open() || !receive({in_.data(), got.bytes}))
            co_return;
    }
}

void link::note_end(error_code error)
{
    if (!why_.empty())
        return;
    if (is_tls_error(error))
        why_ = describe_tls_error(error);
    else if (has_send_failed_)
        why_ = "the connection broke while commands were sent";
    else if (error == asio::error::eof || error == asio::ssl::error::stream_truncated)
        why_ = "the server closed the connection";
    else
        why_ = error.message();
}

// Returns false when the connection is over; why_ says why.
bool link::receive(std::string_view bytes)
{
    reader_->feed(bytes);
    while (reader_->next()) {
        last_reply_ = loop_.turn_began();
        if (const auto item = reader_->current(); is_message(item)) {
            on_message_(item[2].text());
            if (!socket_.is_open())
                return false;
            continue;
        }
        if (pending_.empty()) {
            why_ = "a reply came without a command";
            return false;
        }
        auto command = take_first();
        if (!command.handler) {
            seen_.late_replies += command.requests;
            continue;
        }
        timeouts_ = 0;
        complete(command, failure::none);
        if (!socket_.is_open())
            return false;
    }
    if (reader_->is_broken()) {
        why_ = "the server does not speak Redis's protocol: " + std::string(reader_->why_broken());
        return false;
    }
    return true;
}

// Returns whether this was published on the channel. No command's reply looks like it.
bool link::is_message(const reply& item) const
{
    return !channel_.empty() && item.size() == 3 && item[0].text() == "message" && item[1].text() == channel_;
}

void link::fail_all()
{
    const auto left = pending_.size();
    for (std::size_t i = 0; i < left; ++i) {
        auto lost = take_first();
        complete(lost, failure::broken);
    }
    out_.clear();
}

void link::close(std::string_view why)
{
    if (why_.empty())
        why_ = why;
    close_socket();
}

// Ends every operation of the socket, also those that begin later.
void link::close_socket()
{
    error_code ignored; // the descriptor is released in any case
    socket_.close(ignored);
}

// ---- time

// The next deadline, or the end of the longest silence.
steady_time link::next_alarm() const
{
    auto next = std::max(last_reply_, pending_.front().sent) + longest_silence;
    for (const auto& each : pending_) {
        if (each.handler)
            next = std::min(next, each.deadline);
    }
    return next;
}

// One timer for all commands. It is left alone when replies come, so a busy link sets it once per timeout.
task<void> link::watch_deadlines([[maybe_unused]] std::shared_ptr<link> keep)
{
    while (!pending_.empty() && state_ != state::stopped) {
        alarm_.expires_at(next_alarm());
        co_await alarm_.async_wait(as_result);
        sweep(std::chrono::steady_clock::now());
    }
    is_watching_deadlines_ = false;
}

void link::sweep(steady_time now)
{
    for (std::size_t i = 0; awaited_ > 0 && i < pending_.size(); ++i) {
        auto& each = pending_[i];
        if (!each.handler || each.deadline > now)
            continue;
        seen_.timeouts += each.requests;
        timeouts_ += each.requests;
        complete(each, failure::timeout);
    }
    if (timeouts_ >= options_.failures_to_rest && state_ == state::ready) {
        why_ = "it does not answer in time";
        become(state::resting);
        spawn(loop_.get_executor(), probe(shared_from_this()));
    }
    if (!pending_.empty() && std::max(last_reply_, pending_.front().sent) + longest_silence <= now)
        close("it has not answered for a second");
}

task<void> link::probe([[maybe_unused]] std::shared_ptr<link> keep)
{
    while (state_ == state::resting) {
        co_await pause(spread(options_.probe_interval));
        if (state_ != state::resting)
            co_return;
        const auto got = co_await ask_always("*1\r\n$4\r\nPING\r\n");
        if (got.failed != failure::none || got.value().is_error() || state_ != state::resting)
            continue;
        why_.clear();
        timeouts_ = 0;
        become(state::ready);
    }
}

} // namespace headgate::limiter::redis
