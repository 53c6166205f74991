// How a link connects: look the name up, connect, make the TLS handshake, log in; and again, after a pause, whenever
// the connection breaks.
#include "limiter/redis/client/command.hpp"
#include "limiter/redis/client/error_class.hpp"
#include "limiter/redis/client/link.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <algorithm>
#include <fcntl.h>
#include <sys/un.h>

namespace headgate::limiter::redis {

namespace {

using std::chrono::microseconds;

constexpr microseconds first_pause{20'000}, longest_pause{1'000'000};

} // namespace

task<void> link::run([[maybe_unused]] std::shared_ptr<link> keep)
{
    while (state_ != state::stopped) {
        why_.clear();
        const bool is_connected = co_await connect();
        if (is_connected) {
            reader_ = std::make_unique<reply_reader>();
            has_send_failed_ = false;
            spawn(loop_.get_executor(), log_in(keep));
            co_await read_replies();
        }
        close_socket();
        const bool was_ready = state_ == state::ready || state_ == state::resting;
        seen_.broken += was_ready ? 1 : 0;
        seen_.failed_attempts += was_ready ? 0 : 1;
        if (state_ == state::stopped)
            break;
        become(was_ready ? state::connecting : state::waiting);
        fail_all();
        failed_attempts_ = was_ready ? 0 : failed_attempts_ + 1;
        while (is_sending_) // not for long: the socket is closed
            co_await sent_.wait();
        if (state_ != state::stopped)
            co_await pause(backoff());
    }
    fail_all();
}

// Returns false when there is no connection; why_ says why.
task<bool> link::connect()
{
    if (!options_.socket.empty()) {
        if (options_.socket.size() >= sizeof sockaddr_un::sun_path) {
            why_ = "the path of the socket is too long";
            co_return false;
        }
        const endpoint to(asio::local::stream_protocol::endpoint(options_.socket));
        co_return co_await reach(to);
    }
    error_code not_an_address;
    std::vector<asio::ip::address> addresses{asio::ip::make_address(options_.host, not_an_address)};
    if (not_an_address) {
        auto found = co_await look_up();
        if (found.addresses.empty() && state_ != state::stopped)
            why_ = "no address for " + options_.host + ": " + found.error;
        addresses = std::move(found.addresses);
    }
    for (const auto& address : addresses) {
        const endpoint to(asio::ip::tcp::endpoint(address, options_.port));
        const bool is_connected = co_await reach(to);
        if (is_connected || state_ == state::stopped)
            co_return is_connected;
    }
    co_return false;
}

// Ends early, without addresses, when the link is stopped.
task<name_resolver::answer> link::look_up()
{
    addresses_.reset();
    names_.ask(options_.host, [on = loop_.get_executor(), weak = weak_from_this()](name_resolver::answer found) {
        asio::post(on, [weak, found = std::move(found)]() mutable {
            if (const auto self = weak.lock()) {
                self->addresses_ = std::move(found);
                self->looked_up_.notify();
            }
        });
    });
    while (!addresses_ && state_ != state::stopped)
        co_await looked_up_.wait();
    name_resolver::answer found;
    if (addresses_)
        found = std::move(*addresses_);
    co_return found;
}

task<bool> link::reach(endpoint to)
{
    limit_time(std::chrono::steady_clock::now() + options_.connect_timeout);
    bool is_connected = co_await connect_to(to);
    if (is_connected && options_.tls)
        is_connected = co_await shake_hands();
    lift_limit();
    if (is_connected)
        why_.clear(); // from an earlier address
    co_return is_connected;
}

task<bool> link::connect_to(endpoint to)
{
    close_socket(); // from an earlier address
    tls_.reset();
    error_code failed;
    socket_.open(to.protocol(), failed);
    if (failed) {
        why_ = failed.message();
        co_return false;
    }
    ::fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
    if (to.protocol().family() != AF_UNIX)
        socket_.set_option(asio::ip::tcp::no_delay(true), failed);
    const auto [error] = co_await socket_.async_connect(to, as_result);
    if (state_ == state::stopped)
        co_return false;
    if (!error && !is_late_)
        co_return true;
    why_ = is_late_ ? "no connection within the time allowed" : error.message();
    co_return false;
}

task<bool> link::shake_hands()
{
    const auto name = options_.tls_name.empty() ? options_.host : options_.tls_name;
    tls_ = std::make_unique<tls_stream>(socket_, options_.tls->get());
    if (!expect_name(*tls_, name)) {
        why_ = "\"" + name + "\" is not a name that a server's certificate can have";
        co_return false;
    }
    const auto [error] = co_await tls_->async_handshake(asio::ssl::stream_base::client, as_result);
    if (state_ == state::stopped)
        co_return false;
    if (!error && !is_late_)
        co_return true;
    why_ = is_late_ ? "no TLS handshake within the time allowed; does the server speak TLS there?"
                    : describe_handshake_error(*tls_, name, error);
    co_return false;
}

// Closes the socket at that time, unless the limit was lifted.
void link::limit_time(steady_time until)
{
    is_late_ = false;
    pause_.expires_at(until);
    pause_.async_wait([keep = shared_from_this(), mine = ++attempt_](error_code error) {
        if (error || keep->attempt_ != mine)
            return;
        keep->is_late_ = true;
        keep->close_socket();
    });
}

void link::lift_limit()
{
    ++attempt_;
    pause_.cancel();
}

// Returns false when the server refuses the command; why_ says why, and the connection is closed.
task<bool> link::is_accepted(std::string command, std::string name)
{
    const auto got = co_await ask_always(command);
    if (got.failed == failure::none && !got.value().is_error())
        co_return true;
    if (got.failed != failure::none)
        close("no reply to " + name);
    else if (classify(got.value().text()) == error_class::unauthorized)
        close("the user or the password is wrong: " + std::string(got.value().text()));
    else
        close(name + ": " + std::string(got.value().text()));
    co_return false;
}

task<void> link::log_in([[maybe_unused]] std::shared_ptr<link> keep)
{
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
    co_await pause_.async_wait(as_result);
}

microseconds link::backoff()
{
    return spread(std::min(first_pause * (1 << std::min(failed_attempts_, 10u)), longest_pause));
}

// Changes the time randomly by up to a quarter, so that many workers do not connect at the same moment.
microseconds link::spread(microseconds time)
{
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    const auto quarter = std::max<std::int64_t>(1, time.count() / 4);
    return time - microseconds{quarter} +
           microseconds{static_cast<std::int64_t>((random_ >> 33) % (2 * static_cast<std::uint64_t>(quarter)))};
}

} // namespace headgate::limiter::redis
