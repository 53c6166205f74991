#include "limiter/redis/link.hpp"

#include "limiter/redis/command.hpp"
#include "limiter/redis/error_class.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/tcp.h>
#include <random>
#include <sys/un.h>
#include <unistd.h>

namespace headgate::limiter::redis {

namespace {

using std::chrono::microseconds;

constexpr std::size_t read_bytes = 16 * 1024;
constexpr microseconds first_pause{20'000}, longest_pause{1'000'000};
// A server that owes replies and has said nothing for so long is given up: a connection of its own may fare better.
constexpr microseconds longest_silence{1'000'000};

// One lookup, awaited.
struct lookup
{
    name_resolver& names;
    reactor& in;
    const std::string& host;
    name_resolver::answer found;

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting)
    {
        names.ask(host, [this, waiting](name_resolver::answer said) {
            in.post([this, waiting, said = std::move(said)]() mutable {
                found = std::move(said);
                waiting.resume();
            });
        });
    }
    name_resolver::answer await_resume() { return std::move(found); }
};

std::string words_of(int error) { return boost::system::system_category().message(error); }

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

// ---- the connection

task<void> link::run()
{
    const auto keep = shared_from_this();
    while (state_ != state::stopped) {
        why_.clear();
        const bool made = co_await connect();
        if (made) {
            reader_ = std::make_unique<reply_reader>();
            start(log_in());
            co_await read_replies();
        }
        socket_.close();
        const bool stood = state_ == state::ready || state_ == state::resting;
        seen_.broken += stood ? 1 : 0;
        seen_.failed_attempts += stood ? 0 : 1;
        if (state_ == state::stopped)
            break;
        become(stood ? state::connecting : state::waiting);
        fail_all();
        failed_attempts_ = stood ? 0 : failed_attempts_ + 1;
        if (state_ != state::stopped)
            co_await pause(backoff());
    }
    fail_all();
}

task<bool> link::connect()
{
    if (!options_.socket.empty()) {
        sockaddr_un to{};
        to.sun_family = AF_UNIX;
        if (options_.socket.size() >= sizeof to.sun_path) {
            why_ = "the path of the socket is too long";
            co_return false;
        }
        std::memcpy(to.sun_path, options_.socket.data(), options_.socket.size());
        const bool made = co_await reach(AF_UNIX, reinterpret_cast<const sockaddr*>(&to), sizeof to);
        co_return made;
    }
    error_code not_literal;
    std::vector<asio::ip::address> addresses{asio::ip::make_address(options_.host, not_literal)};
    if (not_literal) {
        lookup asked{names_, reactor_, options_.host, {}}; // named: GCC 12 destroys an aggregate temporary twice
        auto found = co_await asked;
        if (found.addresses.empty())
            why_ = "no address for " + options_.host + ": " + found.error;
        addresses = std::move(found.addresses);
    }
    for (const auto& address : addresses) {
        const asio::ip::tcp::endpoint to(address, options_.port);
        const bool made = co_await reach(to.protocol().family(), to.data(), static_cast<socklen_t>(to.size()));
        if (made || state_ == state::stopped)
            co_return made;
    }
    co_return false;
}

task<bool> link::reach(int family, const sockaddr* to, socklen_t size)
{
    const auto until = std::chrono::steady_clock::now() + options_.connect_timeout;
    bool made = co_await connect_to(family, to, size);
    if (made && options_.tls)
        made = co_await shake_hands(until);
    if (made)
        why_.clear(); // what was wrong with another address
    co_return made;
}

task<bool> link::connect_to(int family, const sockaddr* to, socklen_t size)
{
    const int fd = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        why_ = words_of(errno);
        co_return false;
    }
    const int on = 1;
    if (family != AF_UNIX)
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const bool made = ::connect(fd, to, size) == 0;
    if (!made && errno != EINPROGRESS) {
        why_ = words_of(errno);
        ::close(fd);
        co_return false;
    }
    socket_.close(); // of the address before
    if (!socket_.adopt_connecting(fd)) {
        why_ = words_of(errno);
        co_return false;
    }
    if (made)
        co_return true;
    limit_time(std::chrono::steady_clock::now() + options_.connect_timeout);
    const auto done = co_await socket_.until_writable();
    lift_limit();
    int error = 0;
    socklen_t error_size = sizeof error;
    if (!done.error)
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size);
    if (done.error || error != 0) {
        why_ = is_late_ ? "no connection within the time allowed" : done.error ? done.error.message() : words_of(error);
        co_return false;
    }
    co_return true;
}

// What waits for the socket goes on then, and is_late_ says why.
void link::limit_time(steady_time until)
{
    is_late_ = false;
    pause_.expires_at(until);
    start(end_attempt(++attempt_));
}

task<void> link::end_attempt(std::uint64_t mine)
{
    const auto keep = shared_from_this();
    const auto woken = co_await until_expired(pause_);
    if (woken.error || attempt_ != mine)
        co_return;
    is_late_ = true;
    socket_.cancel();
}

void link::lift_limit()
{
    ++attempt_;
    pause_.cancel();
}

// False: why_ says what the server has against it, and the connection is closed.
task<bool> link::is_accepted(std::string command, std::string what)
{
    const auto got = co_await ask_anyway(command);
    if (got.failed == failure::none && !got.said().is_error())
        co_return true;
    if (got.failed != failure::none)
        close("no reply to " + what);
    else if (classify(got.said().text()) == error_class::unauthorized)
        close("the user or the password is wrong: " + std::string(got.said().text()));
    else
        close(what + ": " + std::string(got.said().text()));
    co_return false;
}

task<void> link::log_in()
{
    const auto keep = shared_from_this();
    std::string command;
    bool accepted = true;
    if (!options_.password.empty()) {
        if (options_.username.empty())
            append_command(command, {"AUTH", options_.password});
        else
            append_command(command, {"AUTH", options_.username, options_.password});
        accepted = co_await is_accepted(command, "AUTH");
    }
    if (accepted && options_.database != 0) {
        command.clear();
        append_command(command, {"SELECT", std::to_string(options_.database)});
        accepted = co_await is_accepted(command, "SELECT");
    }
    if (accepted) {
        command.clear();
        append_command(command, {"CLIENT", "SETNAME", options_.client_name});
        accepted = co_await is_accepted(command, "CLIENT SETNAME");
    }
    if (accepted && !channel_.empty()) {
        command.clear();
        append_command(command, {"SUBSCRIBE", channel_});
        accepted = co_await is_accepted(command, "SUBSCRIBE");
    }
    if (!accepted || state_ == state::stopped)
        co_return;
    ++seen_.connected;
    failed_attempts_ = 0;
    timeouts_ = 0;
    become(state::ready);
}

task<void> link::pause(microseconds time)
{
    pause_.expires_after(time);
    co_await until_expired(pause_);
}

microseconds link::backoff()
{
    return spread(std::min(first_pause * (1 << std::min(failed_attempts_, 10u)), longest_pause));
}

// A quarter more or less, so that many workers do not knock at once.
microseconds link::spread(microseconds time)
{
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    const auto quarter = std::max<std::int64_t>(1, time.count() / 4);
    return time - microseconds{quarter} +
           microseconds{static_cast<std::int64_t>((random_ >> 33) % (2 * static_cast<std::uint64_t>(quarter)))};
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
