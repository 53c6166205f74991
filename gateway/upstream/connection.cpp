#include "gateway/upstream/connection.hpp"

#include "limiter/io/tcp_keep_alive.hpp"

#include <cerrno>
#include <sys/socket.h>

namespace headgate {

task<error_code> upstream_connection::connect(asio::ip::tcp::endpoint to, deadline_list& within)
{
    error_code ignored, failed;
    socket_.close(ignored); // that of the address before
    socket_.open(to.protocol(), failed);
    if (failed)
        co_return failed;
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    keep_alive(socket_.native_handle());
    writer_.deadline().arm(within);
    const auto [error] = co_await socket_.async_connect(to, as_result);
    writer_.deadline().disarm();
    co_return error;
}

task<error_code> upstream_connection::read(kernel_pipe& into, std::size_t most, deadline_list& within)
{
    while (socket_.is_open()) {
        const auto n = into.fill_from(socket_.native_handle(), most);
        if (n > 0)
            co_return error_code{};
        if (n == 0)
            co_return asio::error::eof;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            co_return error_code(errno, boost::system::system_category());
        begin_read(within);
        const auto [error] = co_await socket_.async_wait(asio::socket_base::wait_read, as_result);
        end_read();
        if (error)
            co_return error;
    }
    co_return asio::error::operation_aborted;
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
