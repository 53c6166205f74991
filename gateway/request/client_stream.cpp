#include "gateway/request/client_stream.hpp"

#include <algorithm>
#include <array>
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
template <class Buffers>
auto client_stream<Stream>::write_some(const Buffers& buffers, bool is_last)
{
    if constexpr (may_splice)
        return stream_.async_send(buffers, is_last ? MSG_MORE : 0, as_result);
    else
        return stream_.async_write_some(buffers, as_result);
}

template <class Stream>
task<std::size_t> client_stream<Stream>::send(std::string_view first, std::string_view second, bool is_last,
                                              deadline_list& within)
{
    while (!first.empty() && !second.empty()) {
        const std::array both{asio::buffer(first), asio::buffer(second)};
        writing_.arm(within);
        const auto [error, bytes] = co_await write_some(both, is_last);
        writing_.disarm();
        if (error)
            co_return first.size() + second.size();
        const auto of_first = std::min(bytes, first.size());
        first.remove_prefix(of_first);
        second.remove_prefix(bytes - of_first);
    }
    for (auto rest = first.empty() ? second : first; !rest.empty();) {
        writing_.arm(within);
        const auto [error, bytes] = co_await write_some(asio::buffer(rest), is_last);
        writing_.disarm();
        if (error)
            co_return rest.size();
        rest.remove_prefix(bytes);
    }
    if (is_last)
        finish_sending();
    co_return 0;
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
        writing_.arm(within);
        const auto [error] = co_await socket().async_wait(asio::socket_base::wait_write, as_result);
        writing_.disarm();
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
