// One client connection: reads heads, hands each request to handle_request, keeps the connection as long as both sides
// may. Owns the socket, the client's deadline and, while a request runs, an exchange. Everything happens on the
// worker's thread.
#pragma once

#include "gateway/http/errors.hpp"
#include "gateway/request/exchange.hpp"
#include "gateway/request/listener.hpp"
#include "gateway/worker.hpp"
#include "limiter/io/reactor.hpp"
#include "limiter/io/socket_deadline.hpp"
#include "limiter/io/task.hpp"

#include <boost/intrusive/list_hook.hpp>

#include <memory>
#include <optional>
#include <string_view>

namespace headgate {

class session final : public boost::intrusive::list_base_hook<>, private read_ahead
{
public:
    // Starts serving a non-blocking socket; the session ends itself.
    static void begin(worker& owner, listener& from, int fd, const http::ip_address& peer);

    worker& owner() { return worker_; }
    const http::ip_address& peer() const { return peer_; }
    const config::listener_config& limits() const { return listener_.config(); }

    // co_await client.in_step(): a point at which the requests of one turn wait for each other (reactor.hpp).
    auto in_step() { return worker_.sockets().in_step(); }

    struct sending
    {
        session* to;
        std::string_view first, second;
        bool last = false; // nothing is sent after it: the connection ends
        std::optional<bool> now() { return to->send_now(first, second, last); }
        task<bool> later() { return to->send_rest(first, second); }
    };
    // Sends all of it. False when the client is gone or takes nothing for too long.
    auto send(std::string_view first, std::string_view second = {})
    {
        return at_once_or_later(sending{this, first, second});
    }

    // The same for what a pipe holds.
    task<bool> send(kernel_pipe& from);

    // The next piece of the request's body, once there is one.
    task<body_piece> read_body(exchange& x);
    // Whatever comes, behind the head: for a tunnel.
    task<io_result> read_raw(exchange& x);
    // Whether the rest of a body that nobody wants may be read and dropped; else the answer must close the connection.
    bool can_drop_body(const exchange& x) const;
    // Does so, up to a bound; false when the connection must close after all.
    task<bool> drop_body(exchange& x);

    // Lets the request wait, without a thread. False when the client has left meanwhile: one that has only finished
    // sending counts as gone too, for it must not keep a place that others wait for.
    task<bool> hold(std::chrono::microseconds time);

    // The request under way, if there is one, goes on holding what it holds.
    void renew_slots();
    // Ends whatever is waited for on the client's socket; nothing more can be read from it in good order.
    void interrupt();
    // The client has reset its connection: nobody will read an answer.
    bool is_reset();
    // The next close resets the connection: the client must not take a cut answer for a whole one (D3).
    void close_with_reset();

    // The worker drains: an idle client is let go now, a busy one after its answer.
    void let_go();
    // The worker stops: ends at once, whatever it waits for.
    void cut();

private:
    enum class waiting_for
    {
        nothing,
        request,
        head
    };
    enum class head_state
    {
        complete,
        refused, // error_ says why
        gone
    };

    session(worker& owner, listener& from, const http::ip_address& peer);
    ~session();
    session(const session&) = delete;

    struct reading_head
    {
        session& from;
        std::optional<head_state> now() { return from.parse_head(); }
        task<head_state> later() { return from.read_rest_of_head(); }
    };
    enum class heard_state
    {
        nothing,
        words,
        end
    };

    task<void> serve();
    heard_state fall_idle();
    std::size_t on_readable() override;
    heard_state hear();
    auto read_head() { return at_once_or_later(reading_head{*this}); }
    std::optional<head_state> parse_head();
    task<head_state> read_rest_of_head();
    std::optional<bool> send_now(std::string_view& first, std::string_view& second, bool last);
    task<bool> send_rest(std::string_view first, std::string_view second);
    bool not_sent(std::size_t left);
    bool has_unread() const;
    bool has_left();
    task<void> linger();
    void await(waiting_for what, deadline_list& within);
    void stop_waiting();

    worker& worker_;
    listener& listener_;
    tcp_socket socket_;
    http::ip_address peer_;
    socket_deadline reading_, writing_;
    std::unique_ptr<exchange> x_;
    waiting_for waiting_ = waiting_for::nothing;
    bool leaving_ = false;
    heard_state heard_ = heard_state::nothing;
    http::http_error error_ = http::http_error::none;
};

} // namespace headgate
