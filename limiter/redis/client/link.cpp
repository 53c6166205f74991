#include "limiter/redis/client/link.hpp"

#include <algorithm>
#include <random>

namespace headgate::limiter::redis {

namespace {

using std::chrono::microseconds;

constexpr std::size_t read_bytes = 16 * 1024;
// A server that owes replies and has said nothing for so long is given up: a connection of its own may fare better.
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

link::link(reactor& in, name_resolver& names, link_options options, listener told)
    : reactor_(in), names_(names), options_(std::move(options)), told_(std::move(told)), socket_(in), in_(read_bytes),
      slots_(64), alarm_(in), pause_(in), random_(std::random_device{}())
{}

link::~link() { reactor_.forget(*this); }

void link::subscribe(std::string channel, std::function<void(std::string_view message)> hear)
{
    channel_ = std::move(channel);
    hear_ = std::move(hear);
}

void link::begin() { start(run()); }

void link::stop()
{
    if (state_ == state::stopped)
        return;
    why_ = "stopped";
    become(state::stopped);
    socket_.close();
    alarm_.cancel();
    pause_.cancel();
}

void link::become(state next)
{
    if (state_ == next)
        return;
    state_ = next;
    if (next == state::resting)
        ++seen_.rests;
    if (told_)
        told_(next, why_);
}

// ---- commands

failure link::why_not_now() const
{
    if (state_ != state::ready)
        return failure::unreachable;
    return pending_ < options_.most_pending ? failure::none : failure::overloaded;
}

// What the link itself asks: to log in, and whether anybody is there.
link::question link::ask_anyway(std::string_view command)
{
    out_ += command;
    const auto allowed = state_ == state::resting ? options_.timeout : options_.connect_timeout;
    return {*this, failure::none, reactor_.turn_began() + allowed};
}

// Its reply says nothing that the next one does not.
void link::say_asking()
{
    out_ += "*1\r\n$6\r\nASKING\r\n";
    enqueue({.sent = reactor_.turn_began(), .asked_for = 0});
}

void link::enqueue(question& who)
{
    enqueue({.who = &who, .sent = reactor_.turn_began(), .deadline = who.deadline_, .asked_for = who.asked_for_});
    ++waited_for_;
    if (!is_sending_)
        send_soon();
    if (!is_keeping_time_)
        start(keep_time());
    else if (who.deadline_ < alarm_.expiry())
        alarm_.cancel(); // it is set anew
}

void link::enqueue(const slot& next)
{
    if (count_ == slots_.size()) {
        std::vector<slot> larger(2 * count_);
        for (std::size_t i = 0; i < count_; ++i)
            larger[i] = slot_at(i);
        slots_ = std::move(larger);
        first_ = 0;
    }
    slot_at(count_++) = next;
    pending_ += next.asked_for;
}

link::slot link::take_first()
{
    const auto first = slot_at(0);
    first_ = (first_ + 1) & (slots_.size() - 1);
    --count_;
    pending_ -= first.asked_for;
    return first;
}

// The waiting coroutine goes on at once, inside this call; it may ask again, and it may stop the link.
void link::finish(slot& of, failure failed)
{
    auto* const who = std::exchange(of.who, nullptr);
    if (!who)
        return;
    --waited_for_;
    who->got_ = {failed, reader_.get()};
    who->waiting_.resume();
}

void link::on_turn_end()
{
    if (is_sending_ || !socket_.is_open() || unsent().empty())
        return;
    if (!send_some())
        return end_sending();
    if (!unsent().empty())
        start(send_rest());
}

// What the kernel takes at once. False: the connection is broken.
bool link::send_some()
{
    auto& bytes = unsent();
    std::string_view rest = bytes, nothing;
    const bool sound = socket_.send_now(rest, nothing);
    bytes.erase(0, bytes.size() - rest.size());
    return sound;
}

void link::end_sending()
{
    if (tls_)
        hear_last_words();
    close("the connection broke while commands were sent");
}

task<void> link::send_rest()
{
    const auto keep = shared_from_this();
    is_sending_ = true;
    while (socket_.is_open() && !unsent().empty()) {
        const auto ready = co_await socket_.until_writable();
        if (ready.error)
            break;
        if (!send_some()) {
            end_sending();
            break;
        }
    }
    is_sending_ = false;
}

// ---- replies

task<void> link::read_replies()
{
    for (;;) {
        const auto got = co_await socket_.read_some(in_.data(), in_.size());
        if (got.error) {
            if (why_.empty())
                why_ = got.error == asio::error::eof ? "the server closed the connection" : got.error.message();
            co_return;
        }
        const std::string_view bytes(in_.data(), got.bytes);
        const bool sound = tls_ ? receive_encrypted(bytes) : receive(bytes);
        if (!sound)
            co_return;
    }
}

bool link::receive(std::string_view bytes)
{
    last_heard_ = reactor_.turn_began();
    reader_->feed(bytes);
    while (reader_->next()) {
        if (const auto said = reader_->current(); is_message(said)) {
            hear_(said[2].text());
            if (!socket_.is_open())
                return false;
            continue;
        }
        if (count_ == 0) {
            why_ = "a reply came that nobody asked for";
            return false;
        }
        auto answered = take_first();
        if (!answered.who) {
            seen_.late_replies += answered.asked_for;
            continue;
        }
        timeouts_ = 0;
        finish(answered, failure::none);
        if (!socket_.is_open())
            return false;
    }
    if (reader_->is_broken()) {
        why_ = "the server does not speak Redis's protocol: " + std::string(reader_->why_broken());
        return false;
    }
    return true;
}

// What was published on the channel: no command's reply looks like it.
bool link::is_message(const reply& said) const
{
    return !channel_.empty() && said.size() == 3 && said[0].text() == "message" && said[1].text() == channel_;
}

void link::fail_all()
{
    const auto left = count_;
    for (std::size_t i = 0; i < left; ++i) {
        auto lost = take_first();
        finish(lost, failure::broken);
    }
    out_.clear();
    if (tls_)
        tls_->outgoing().clear();
}

void link::close(std::string_view why)
{
    if (why_.empty())
        why_ = why;
    socket_.close();
}

// ---- time

// The nearest deadline; when nobody waits for what is owed, the end of the server's silence.
steady_time link::next_alarm()
{
    auto nearest = std::max(last_heard_, slot_at(0).sent) + longest_silence;
    for (std::size_t i = 0; i < count_; ++i) {
        if (const auto& each = slot_at(i); each.who)
            nearest = std::min(nearest, each.deadline);
    }
    return nearest;
}

// One timer for all commands. It is not touched when replies come, so a busy link sets it once in the time of a
// command.
task<void> link::keep_time()
{
    const auto keep = shared_from_this();
    is_keeping_time_ = true;
    while (count_ > 0 && state_ != state::stopped) {
        alarm_.expires_at(next_alarm());
        co_await until_expired(alarm_);
        sweep(reactor_.turn_began());
    }
    is_keeping_time_ = false;
}

void link::sweep(steady_time now)
{
    for (std::size_t i = 0; waited_for_ > 0 && i < count_; ++i) {
        auto& each = slot_at(i);
        if (!each.who || each.deadline > now)
            continue;
        seen_.timeouts += each.asked_for;
        timeouts_ += each.asked_for;
        finish(each, failure::timeout);
    }
    if (timeouts_ >= options_.failures_to_rest && state_ == state::ready) {
        why_ = "it does not answer in time";
        become(state::resting);
        start(probe());
    }
    if (count_ > 0 && std::max(last_heard_, slot_at(0).sent) + longest_silence <= now)
        close("it has not answered for a second");
}

task<void> link::probe()
{
    const auto keep = shared_from_this();
    while (state_ == state::resting) {
        co_await pause(spread(options_.probe_interval));
        if (state_ != state::resting)
            co_return;
        const auto got = co_await ask_anyway("*1\r\n$4\r\nPING\r\n");
        if (got.failed != failure::none || got.said().is_error() || state_ != state::resting)
            continue;
        why_.clear();
        timeouts_ = 0;
        become(state::ready);
    }
}

} // namespace headgate::limiter::redis
