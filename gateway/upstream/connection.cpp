#include "gateway/upstream/connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/socket.h>

namespace headgate {

namespace {

constexpr std::size_t least_room = 4096; // for a read

} // namespace

task<error_code> upstream_connection::connect(asio::ip::tcp::endpoint to, deadline_list& within)
{
    error_code ignored, failed;
    socket_.close(ignored); // that of the address before
    socket_.open(to.protocol(), failed);
    if (failed)
        co_return failed;
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    writing_.arm(within);
    const auto [error] = co_await socket_.async_connect(to, as_result);
    writing_.disarm();
    co_return error;
}

task<bool> upstream_connection::send(std::string_view first, std::string_view second, deadline_list& within)
{
    while (!first.empty() && !second.empty() && !is_cancelled_) {
        const std::array both{asio::buffer(first), asio::buffer(second)};
        writing_.arm(within);
        const auto [error, bytes] = co_await socket_.async_write_some(both, as_result);
        writing_.disarm();
        if (error)
            co_return false;
        const auto of_first = std::min(bytes, first.size());
        first.remove_prefix(of_first);
        second.remove_prefix(bytes - of_first);
    }
    for (auto rest = first.empty() ? second : first; !rest.empty();) {
        if (is_cancelled_)
            co_return false;
        writing_.arm(within);
        const auto [error, bytes] = co_await socket_.async_write_some(asio::buffer(rest), as_result);
        writing_.disarm();
        if (error)
            co_return false;
        rest.remove_prefix(bytes);
    }
    co_return true;
}

task<error_code> upstream_connection::read(http::byte_buffer& into, deadline_list& within)
{
    if (is_cancelled_)
        co_return asio::error::operation_aborted;
    const auto room = std::max(into.capacity() - into.size(), least_room);
    reading_.arm(within);
    const auto [error, bytes] = co_await socket_.async_read_some(asio::buffer(into.prepare(room), room), as_result);
    reading_.disarm();
    into.commit(bytes);
    co_return is_cancelled_ ? error_code(asio::error::operation_aborted) : error;
}

task<error_code> upstream_connection::read(kernel_pipe& into, std::size_t most, deadline_list& within)
{
    while (!is_cancelled_) {
        const auto n = into.fill_from(socket_.native_handle(), most);
        if (n > 0)
            co_return error_code{};
        if (n == 0)
            co_return asio::error::eof;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            co_return error_code(errno, boost::system::system_category());
        reading_.arm(within);
        const auto [error] = co_await socket_.async_wait(asio::socket_base::wait_read, as_result);
        reading_.disarm();
        if (error)
            co_return error;
    }
    co_return asio::error::operation_aborted;
}

void upstream_connection::cancel()
{
    is_cancelled_ = true; // there may be nothing to cancel yet
    error_code ignored;
    socket_.cancel(ignored);
}

void upstream_connection::close()
{
    error_code ignored;
    socket_.close(ignored);
}

bool upstream_connection::is_quiet()
{
    char byte;
    return ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

} // namespace headgate
