// How a link comes by its connection: a name looked up, a socket connected, the user logged in; and again after a pause
// whenever it breaks.
#include "limiter/redis/client/command.hpp"
#include "limiter/redis/client/error_class.hpp"
#include "limiter/redis/client/link.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

namespace headgate::limiter::redis {

namespace {

using std::chrono::microseconds;

constexpr microseconds first_pause{20'000}, longest_pause{1'000'000};

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

} // namespace headgate::limiter::redis
