#include "gateway/client/client_stream.hpp"

#include <cerrno>
#include <poll.h>
#include <sys/socket.h>

namespace headgate {

template <class Stream>
std::size_t client_stream<Stream>::read_now(char* at, std::size_t most)
{
    error_code ignored;
    return stream_.read_some(asio::buffer(at, most), ignored);
}

template <class Stream>
task<std::size_t> client_stream<Stream>::send(kernel_pipe& from, deadline_list& within)
{
    while (from.held() > 0 && is_open()) {
        const auto n = from.empty_into(socket().native_handle());
        if (n > 0 || (n < 0 && errno == EINTR))
            continue;
        if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
            break;
        writer_.deadline().arm(within);
        const auto [error] = co_await socket().async_wait(asio::socket_base::wait_write, as_result);
        writer_.deadline().disarm();
        if (error)
            break;
    }
    co_return from.held();
}

template <class Stream>
presence client_stream<Stream>::look() const
{
    if (!is_open())
        return presence::gone;
    pollfd asked{socket().native_handle(), POLLRDHUP, 0};
    if (::poll(&asked, 1, 0) <= 0)
        return presence::here;
    if ((asked.revents & (POLLERR | POLLHUP)) != 0)
        return presence::gone;
    return (asked.revents & POLLRDHUP) != 0 ? presence::half_closed : presence::here;
}

template <class Stream>
bool client_stream<Stream>::has_unread() const
{
    char byte;
    return ::recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

template <class Stream>
void client_stream<Stream>::cancel()
{
    error_code ignored;
    socket().cancel(ignored);
}

template <class Stream>
void client_stream<Stream>::finish_sending()
{
    error_code ignored;
    socket().shutdown(asio::socket_base::shutdown_send, ignored);
}

template <class Stream>
void client_stream<Stream>::close()
{
    error_code ignored;
    socket().close(ignored);
}

template <class Stream>
void client_stream<Stream>::reset()
{
    error_code ignored;
    socket().set_option(asio::socket_base::linger(true, 0), ignored);
    close();
}

template class client_stream<stream_socket>;

} // namespace headgate
