// One connection of a worker to a Redis server. It is made again whenever it breaks. Commands are pipelined, and each
// has a deadline. The commands of one turn of the event loop leave in one write. Replies come in the order of the
// commands; a command that has timed out keeps its place in that order, so that its late reply is dropped and never
// taken for the reply to another command (M1).
#pragma once

#include "limiter/io/event.hpp"
#include "limiter/io/event_loop.hpp"
#include "limiter/io/name_resolver.hpp"
#include "limiter/io/tls_context.hpp"
#include "limiter/io/tls_stream.hpp"
#include "limiter/redis/client/reply.hpp"

#include <boost/asio/any_completion_handler.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::limiter::redis {

struct link_options
{
    std::string host; // a name or an address
    std::uint16_t port = 6379;
    std::string socket; // path of a Unix socket, instead of host and port; empty: none

    std::shared_ptr<const tls_context> tls; // null: plain text
    std::string tls_name;                   // the name in the server's certificate; empty: the host

    std::string username; // empty: the default user
    std::string password; // empty: no login
    unsigned database = 0;
    std::string client_name = "headgate";

    std::chrono::microseconds timeout{20'000};            // of a command
    std::chrono::microseconds connect_timeout{1'000'000}; // of a connection, with its TLS handshake
    unsigned failures_to_rest = 5;                        // consecutive timeouts before the state `resting`
    std::chrono::microseconds probe_interval{1'000'000};  // while resting
    std::size_t most_pending = 10'000;                    // requests that wait for a reply; more are refused at once
};

enum class failure : std::uint8_t
{
    none,
    timeout,     // no reply in time
    unreachable, // not connected, or resting: the command was not sent
    broken,      // the connection ended before the reply: whether the command was run is not known
    overloaded   // too many requests wait already: the command was not sent
};
std::string_view name_of(failure f);

class link final : public std::enable_shared_from_this<link>, private turn_end
{
public:
    enum class state : std::uint8_t
    {
        connecting,
        waiting, // the last attempt failed; another one follows
        ready,
        resting, // connected, but it does not answer in time: only a probe is sent
        stopped
    };
    struct counters
    {
        std::uint64_t connected = 0, failed_attempts = 0, broken = 0, timeouts = 0, late_replies = 0, rests = 0;
        void add(const counters& more);
    };
    // Called on every change of state, with the reason as text for the log.
    using listener = std::function<void(state now, std::string_view why)>;
    struct answer
    {
        failure failed = failure::none;
        const reply_reader* reader = nullptr;
        reply value() const { return reader->current(); }
    };

private:
    using reply_handler = asio::any_completion_handler<void(answer)>;

    // The handler is kept with the command and called once: with the reply, at the deadline, or when the connection
    // ends. A refused command is answered at once.
    auto wait_for_reply(failure refused, steady_time deadline, std::size_t requests)
    {
        return asio::async_initiate<const asio::deferred_t, void(answer)>(
            [this, refused, deadline, requests](auto handler) {
                if (refused == failure::none)
                    enqueue(reply_handler(std::move(handler)), deadline, requests);
                else
                    std::move(handler)(answer{refused, nullptr});
            },
            asio::deferred);
    }

public:
    // REQUIRES: made by std::make_shared, because its operations share ownership. The loop and the resolver outlive it.
    link(event_loop& loop, name_resolver& names, link_options options, listener on_change = {});
    ~link();

    // Makes each connection subscribe to the channel; `on_message` gets what is published there. Only PING may be sent
    // over such a link. REQUIRES: begin() was not called yet.
    void subscribe(std::string channel, std::function<void(std::string_view message)> on_message);
    void begin();
    // Closes the connection. Pending commands end soon with `broken`.
    void stop();

    state now() const { return state_; }
    const std::string& why() const { return why_; } // why it is not ready
    const counters& seen() const { return seen_; }
    const link_options& options() const { return options_; }

    // const auto got = co_await link.ask(began, [&](std::string& out) { append_command(out, ...); });
    // `write` appends one command, which is sent at the end of the turn. Its deadline counts from `began`. The
    // coroutine is resumed inside the link's reading, so the reply is valid until its next suspension. `asking`: ASKING
    // goes before the command (a slot that is migrating to this node). `requests`: how many requests the command
    // serves.
    template <class Write>
    auto ask(steady_time began, Write&& write, bool asking = false, std::size_t requests = 1)
    {
        const auto refused = why_not_now();
        if (refused == failure::none) {
            if (asking)
                append_asking();
            write(out_);
        }
        return wait_for_reply(refused, began + options_.timeout, requests);
    }
    // For calls of scripts: how many were sent, and the number of the last one with a script's text.
    struct script_calls
    {
        std::uint64_t sent = 0, last_text = 0;
    };
    script_calls& calls() { return calls_; }
    event_loop& loop() const { return loop_; }
    // Sends, at the end of the turn, the commands that were appended by then.
    void send_soon() { loop_.at_turn_end(*this); }
    steady_time turn_began() const { return loop_.turn_began(); }

private:
    struct pending_command
    {
        reply_handler handler; // empty: nothing waits for the reply, which is dropped
        steady_time sent{}, deadline{};
        std::size_t requests = 1; // that it serves; 0: ASKING
    };

    failure why_not_now() const;
    auto ask_always(std::string_view command) // sends in any state: to log in and to probe
    {
        out_ += command;
        const auto allowed = state_ == state::resting ? options_.timeout : options_.connect_timeout;
        return wait_for_reply(failure::none, loop_.turn_began() + allowed, 1);
    }
    void append_asking();
    void enqueue(reply_handler handler, steady_time deadline, std::size_t requests);
    pending_command take_first();
    void complete(pending_command& command, failure failed);

    void on_turn_end() override;
    void send();
    void on_sent(error_code error);

    task<void> read_replies();
    void note_end(error_code error);
    bool receive(std::string_view bytes);
    bool is_message(const reply& item) const;
    void fail_all();
    void close(std::string_view why);
    void close_socket();

    // Connecting (link_connection.cpp).
    using endpoint = asio::generic::stream_protocol::endpoint;
    task<void> run(std::shared_ptr<link> keep);
    task<bool> connect();
    task<name_resolver::answer> look_up();
    task<bool> reach(endpoint to);
    task<bool> connect_to(endpoint to);
    task<bool> shake_hands();
    void limit_time(steady_time until);
    void lift_limit();
    task<void> log_in(std::shared_ptr<link> keep);
    task<bool> is_accepted(std::string command, std::string name);
    task<void> pause(std::chrono::microseconds time);
    std::chrono::microseconds backoff();
    std::chrono::microseconds spread(std::chrono::microseconds time);

    steady_time next_alarm() const;
    task<void> watch_deadlines(std::shared_ptr<link> keep);
    void sweep(steady_time now);
    task<void> probe(std::shared_ptr<link> keep);
    void become(state next);

    event_loop& loop_;
    name_resolver& names_;
    const link_options options_;
    listener on_change_;
    std::string channel_; // subscribed to; empty: none
    std::function<void(std::string_view message)> on_message_;

    stream_socket socket_;
    std::unique_ptr<tls_stream> tls_;      // of this connection; null: plain text
    std::unique_ptr<reply_reader> reader_; // of this connection
    std::vector<char> in_;
    std::string out_;     // commands that are not being sent yet
    std::string sending_; // commands of the write that is under way
    bool is_sending_ = false;
    bool has_send_failed_ = false; // on this connection
    event sent_;                   // is_sending_ has become false

    std::deque<pending_command> pending_; // commands without a reply, in their order
    std::size_t awaited_ = 0;             // of pending_, those with a handler
    std::size_t requests_ = 0;            // of pending_, the sum
    steady_time last_reply_{};

    steady_timer alarm_; // for the next deadline of pending_
    bool is_watching_deadlines_ = false;
    steady_timer pause_;           // between attempts or probes; limits the time of an attempt
    unsigned failed_attempts_ = 0; // consecutive
    std::size_t timeouts_ = 0;     // consecutive
    state state_ = state::connecting;
    std::uint64_t attempt_ = 0; // numbers the attempts, so that the time limit of a former one does nothing
    bool is_late_ = false;      // this attempt has run out of time
    event looked_up_;
    std::optional<name_resolver::answer> addresses_; // of the lookup that is under way
    std::string why_;
    counters seen_;
    script_calls calls_;
    std::uint64_t random_;
};

} // namespace headgate::limiter::redis
