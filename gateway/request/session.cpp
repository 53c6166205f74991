#include "gateway/request/session.hpp"

#include "gateway/request/handle_request.hpp"
#include "gateway/request/limit.hpp"
#include "gateway/request/listener.hpp"
#include "gateway/upstream/upstream.hpp"
#include "gateway/worker.hpp"

#include <algorithm>
#include <poll.h>
#include <sys/socket.h>

namespace headgate {

namespace {

constexpr unsigned pipelined_a_turn = 32;
constexpr std::uint64_t most_dropped = 64 * 1024; // of a body nobody wants, before the connection is closed instead

} // namespace

session::session(worker& owner, listener& from, const http::ip_address& peer)
    : worker_(owner), listener_(from), socket_(owner.sockets(), socket_turn::after_others), peer_(peer),
      reading_(socket_), writing_(socket_)
{
    worker_.enter(*this);
}

session::~session()
{
    worker_.leave(*this);
    listener_.caps().leave(peer_);
    if (x_)
        worker_.give_back(std::move(x_));
}

void session::begin(worker& owner, listener& from, int fd, const http::ip_address& peer)
{
    void* at = frame_pool::allocate(sizeof(session));
    auto* self = new (at) session(owner, from, peer);
    self->socket_.adopt(fd);
    owner.sockets().read_clock(); // many may be accepted one after the other
    start([](session* s) -> task<void> {
        co_await s->serve();
        s->~session();
        frame_pool::release(s, sizeof(session));
    }(self));
}

task<void> session::serve()
{
    unsigned in_a_row = 0;
    for (;;) {
        if (!x_ || x_->in.empty()) {
            // Here clients spend their lives, so nothing but this frame is kept for one that waits.
            await(waiting_for::request, listener_.idle_timeout());
            heard_ = fall_idle();
            while (heard_ == heard_state::nothing) {
                const auto ready = co_await socket_.until_readable(this);
                if (ready.error || leaving_)
                    heard_ = heard_state::end;
            }
            stop_waiting();
            if (heard_ == heard_state::end)
                break;
        }
        const auto head = co_await read_head();
        if (head == head_state::gone)
            break;
        bool again = false;
        if (head == head_state::complete)
            again = co_await handle_request(*this, *x_);
        else
            co_await answer_broken_request(*this, *x_, error_);
        if (!again || leaving_ || worker_.is_draining()) {
            if (head == head_state::refused || !x_->body_done || has_unread())
                co_await linger();
            break;
        }
        x_->next_request();
        // One client that has sent many requests at once must not keep the others waiting.
        if (!x_->in.empty() && ++in_a_row % pipelined_a_turn == 0)
            co_await worker_.sockets().others_first();
    }
    socket_.close();
    reading_.disarm();
    writing_.disarm();
}

// Between two requests a client holds no buffers: it costs next to nothing until it speaks, and who speaks next finds
// the buffers of who spoke last still warm.
session::heard_state session::fall_idle()
{
    if (x_)
        worker_.give_back(std::move(x_));
    return leaving_ || worker_.is_draining() ? heard_state::end : heard_state::nothing;
}

std::size_t session::on_readable()
{
    heard_ = hear();
    return x_ ? x_->in.size() : 0;
}

session::heard_state session::hear()
{
    x_ = worker_.take_exchange();
    const auto got = socket_.read_now(x_->in.prepare(read_size), read_size);
    if (!got)
        return fall_idle(); // the socket only seemed readable: a client that has said nothing is idle
    if (got->error)
        return heard_state::end;
    x_->in.commit(got->bytes);
    x_->parser.set_limits({listener_.config().limits.request_line.bytes, listener_.config().limits.head.bytes,
                           listener_.config().limits.fields});
    return heard_state::words;
}

// Bytes become a head, if they are enough for one.
std::optional<session::head_state> session::parse_head()
{
    const auto state = x_->parser.feed(x_->in.view());
    if (state == http::parse_state::need_more)
        return std::nullopt;
    stop_waiting();
    error_ = x_->parser.error();
    return state == http::parse_state::done ? head_state::complete : head_state::refused;
}

// The time for a head is counted from its first byte to its last (P6); silence before that is idleness.
task<session::head_state> session::read_rest_of_head()
{
    await(waiting_for::head, listener_.head_timeout());
    for (;;) {
        const auto got = co_await socket_.read_some(x_->in.prepare(read_size), read_size);
        if (got.error) {
            stop_waiting();
            // An empty line and then silence is idleness too: a 408 might be taken for the next request's answer.
            if (!reading_.expired() || !x_->parser.started())
                co_return head_state::gone;
            reading_.forget();
            error_ = http::http_error::head_timeout;
            co_return head_state::refused;
        }
        x_->in.commit(got.bytes);
        if (const auto state = parse_head())
            co_return *state;
    }
}

void session::stop_waiting()
{
    reading_.disarm();
    waiting_ = waiting_for::nothing;
}

void session::await(waiting_for what, deadline_list& within)
{
    waiting_ = what;
    reading_.arm(within);
}

void session::interrupt() { socket_.cancel(); }

void session::renew_slots()
{
    if (x_ && x_->route)
        headgate::renew_slots(*this, *x_);
}

bool session::is_reset()
{
    // Not by reading: requests that wait in the socket would hide the end.
    pollfd asked{socket_.native_handle(), 0, 0};
    return !socket_.is_open() || (::poll(&asked, 1, 0) > 0 && (asked.revents & (POLLERR | POLLHUP)) != 0);
}

bool session::has_left()
{
    pollfd asked{socket_.native_handle(), POLLRDHUP, 0};
    return !socket_.is_open() || (::poll(&asked, 1, 0) > 0 && (asked.revents & (POLLERR | POLLHUP | POLLRDHUP)) != 0);
}

task<bool> session::hold(std::chrono::microseconds time)
{
    constexpr std::chrono::microseconds look_again{250'000};
    steady_timer timer(worker_.sockets());
    const auto end = std::chrono::steady_clock::now() + time;
    for (auto now = end - time; now < end; now = std::chrono::steady_clock::now()) {
        timer.expires_at(std::min(end, now + look_again));
        const auto woken = co_await until_expired(timer);
        if (woken.error || has_left())
            co_return false;
    }
    co_return true;
}

void session::close_with_reset()
{
    const struct linger reset
    {
        1, 0
    };
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    socket_.close();
}

void session::let_go()
{
    leaving_ = true;
    if (waiting_ == waiting_for::request) {
        socket_.cancel();
    }
}

void session::cut()
{
    leaving_ = true;
    socket_.close();
    if (x_ && x_->via)
        x_->via->stop();
}

std::optional<bool> session::send_now(std::string_view& first, std::string_view& second, bool last)
{
    x_->outcome.bytes_out += first.size() + second.size();
    if (!(last ? socket_.send_last_now(first, second) : socket_.send_now(first, second)))
        return not_sent(first.size() + second.size());
    return first.empty() && second.empty() ? std::optional(true) : std::nullopt;
}

task<bool> session::send_rest(std::string_view first, std::string_view second)
{
    while (!first.empty() || !second.empty()) {
        writing_.arm(listener_.write_timeout());
        const auto ready = co_await socket_.until_writable();
        writing_.disarm();
        if (ready.error || !socket_.send_now(first, second))
            co_return not_sent(first.size() + second.size());
    }
    co_return true;
}

task<bool> session::send(kernel_pipe& from)
{
    x_->outcome.bytes_out += from.held();
    for (;;) {
        if (!socket_.send_now(from))
            co_return not_sent(from.held());
        if (from.held() == 0)
            co_return true;
        writing_.arm(listener_.write_timeout());
        const auto ready = co_await socket_.until_writable();
        writing_.disarm();
        if (ready.error)
            co_return not_sent(from.held());
    }
}

bool session::not_sent(std::size_t left)
{
    x_->outcome.bytes_out -= left;
    if (x_->outcome.error == http::http_error::none)
        x_->outcome.error = http::http_error::client_gone;
    return false;
}

task<body_piece> session::read_body(exchange& x)
{
    for (;;) {
        const auto ready = take_ready_body(x, listener_.config().limits.body.bytes);
        if (ready.done || ready.error != http::http_error::none || !ready.data.empty())
            co_return ready;
        // The window is used up: fill it again from its beginning. It has room, so nothing that views the head moves.
        x.in.truncate(x.body_at);
        x.body_read = x.body_at;
        reading_.arm(listener_.body_timeout());
        const auto got = co_await socket_.read_some(x.in.prepare(read_size), read_size);
        reading_.disarm();
        if (reading_.expired()) {
            reading_.forget();
            co_return body_piece{.error = http::http_error::body_timeout};
        }
        if (got.error)
            co_return body_piece{.error = http::http_error::client_gone};
        x.in.commit(got.bytes);
        // Each piece came in time; all of them together must as well.
        x.body_waited += std::chrono::steady_clock::now() - reading_.armed_at();
        const auto& allowed = listener_.config().timeouts;
        if (is_too_slow(x.body_waited, x.body_bytes + got.bytes, allowed.body, allowed.body_rate.bytes))
            co_return body_piece{.error = http::http_error::body_timeout};
    }
}

task<io_result> session::read_raw(exchange& x)
{
    const auto got = co_await socket_.read_some(x.in.prepare(read_size), read_size);
    if (!got.error)
        x.in.commit(got.bytes);
    co_return got;
}

bool session::can_drop_body(const exchange& x) const
{
    if (x.body_done)
        return true;
    // A client that waits for 100 and gets an answer instead may send the body or leave it out: where its next request
    // would begin is not known (C4).
    if (x.framing.expects_continue && !x.continue_sent && x.in.size() == x.body_at)
        return false;
    return x.framing.body.kind != http::body_kind::length || x.body_left <= most_dropped;
}

task<bool> session::drop_body(exchange& x)
{
    std::uint64_t dropped = 0;
    while (!x.body_done) {
        const auto piece = co_await read_body(x);
        dropped += piece.data.size();
        if (piece.error != http::http_error::none || dropped > most_dropped)
            co_return false;
    }
    co_return true;
}

bool session::has_unread() const
{
    if (x_->in.size() > x_->body_read)
        return true;
    // Who asked for the connection to be closed sends nothing more: what epoll has said will do. Others may just be
    // sending their next request.
    if (!x_->framing.keep_alive && !socket_.may_be_readable())
        return false;
    char byte;
    return ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

// Closing with unread bytes would reset the connection and may take our answer with it: say that we are done, then
// swallow what still comes for a short while.
task<void> session::linger()
{
    ::shutdown(socket_.native_handle(), SHUT_WR);
    reading_.arm(listener_.linger_timeout());
    std::uint64_t swallowed = 0;
    while (swallowed < 4 * most_dropped && !reading_.expired()) {
        x_->in.clear();
        const auto got = co_await socket_.read_some(x_->in.prepare(read_size), read_size);
        if (got.error)
            break;
        swallowed += got.bytes;
    }
    reading_.disarm();
}

} // namespace headgate
