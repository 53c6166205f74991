// One server of Redis and one worker's connection to it: made again whenever it breaks, pipelined, every command with a
// deadline. Commands of one turn of the event loop leave in one write. Replies come in the order of the commands; one
// whose time is over keeps its place, and its reply is dropped when it comes, so that no answer ever reaches the wrong
// question (M1).
#pragma once

#include "limiter/io/name_resolver.hpp"
#include "limiter/io/reactor.hpp"
#include "limiter/io/task.hpp"
#include "limiter/io/tls_client.hpp"
#include "limiter/redis/client/reply.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

namespace headgate::limiter::redis {

struct link_options
{
    std::string host; // a name or an address
    std::uint16_t port = 6379;
    std::string socket; // not empty: a Unix socket instead

    std::shared_ptr<const tls_context> tls; // null: plain text
    std::string tls_name;                   // what the server's certificate must be for; empty: the host

    std::string username; // empty: the default user
    std::string password; // empty: no login
    unsigned database = 0;
    std::string client_name = "headgate";

    std::chrono::microseconds timeout{20'000};            // of a command
    std::chrono::microseconds connect_timeout{1'000'000}; // of a connection, with its TLS handshake
    unsigned failures_to_rest = 5;                        // timeouts in a row before the server is left alone
    std::chrono::microseconds probe_interval{1'000'000};
    std::size_t most_pending = 10'000; // who wait for a reply; more are refused at once
};

enum class failure : std::uint8_t
{
    none,
    timeout,     // no reply in time
    unreachable, // not connected, or left alone for now: nothing was sent
    broken,      // the connection ended before the reply: whether the command was run is not known
    overloaded   // too many wait already: nothing was sent
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
        resting, // connected, but it does not answer in time: a probe alone asks it
        stopped
    };
    struct counters
    {
        std::uint64_t connected = 0, failed_attempts = 0, broken = 0, timeouts = 0, late_replies = 0, rests = 0;
        void add(const counters& more);
    };
    // Told of each change, with a reason in words for the log.
    using listener = std::function<void(state now, std::string_view why)>;

    // Made by std::make_shared: what it has under way keeps it.
    link(reactor& in, name_resolver& names, link_options options, listener told = {});
    ~link();

    // Before begin(): each connection subscribes to the channel, and `hear` gets what is published there. Only PING can
    // be asked over such a link.
    void subscribe(std::string channel, std::function<void(std::string_view message)> hear);
    void begin();
    // Whoever waits is told soon; the connection is closed.
    void stop();

    state now() const { return state_; }
    const std::string& why() const { return why_; } // it is not ready
    const counters& seen() const { return seen_; }
    const link_options& options() const { return options_; }

    struct answer
    {
        failure failed = failure::none;
        const reply_reader* reader = nullptr;
        reply said() const { return reader->current(); }
    };
    // co_await link.ask(began, [&](std::string& out) { append_command(out, ...); }): `write` appends one command. It
    // has the time of a command from `began` on, when what it belongs to began. The reply is valid until the next
    // suspension. `asking`: ASKING goes before it, for a slot on its way to this node of a cluster. `asked_for`: how
    // many wait for what the command will say.
    template <class Write>
    auto ask(steady_time began, Write&& write, bool asking = false, std::size_t asked_for = 1)
    {
        const auto refused = why_not_now();
        if (refused == failure::none) {
            if (asking)
                say_asking();
            write(out_);
        }
        return question(*this, refused, began + options_.timeout, asked_for);
    }
    // For who calls scripts over it: how many calls so far, and the last of them that carried a script's text.
    struct script_calls
    {
        std::uint64_t asked = 0, last_text = 0;
    };
    script_calls& calls() { return calls_; }
    reactor& loop() const { return reactor_; }
    // At the end of the turn, if there is anything then.
    void send_soon() { reactor_.at_turn_end(*this); }
    steady_time turn_began() const { return reactor_.turn_began(); }

private:
    // Lives in the frame of who waits.
    class question
    {
    public:
        question(link& to, failure refused, steady_time deadline, std::size_t asked_for = 1)
            : to_(to), got_{refused}, deadline_(deadline), asked_for_(asked_for)
        {}
        bool await_ready() const noexcept { return got_.failed != failure::none; }
        void await_suspend(std::coroutine_handle<> waiting)
        {
            waiting_ = waiting;
            to_.enqueue(*this);
        }
        answer await_resume() const noexcept { return got_; }

    private:
        friend class link;
        link& to_;
        answer got_;
        steady_time deadline_;
        std::size_t asked_for_;
        std::coroutine_handle<> waiting_;
    };
    struct slot
    {
        question* who = nullptr; // null: its time is over
        steady_time sent{}, deadline{};
        std::size_t asked_for = 1; // how many waited for it at first; 0: nobody
    };

    failure why_not_now() const;
    question ask_anyway(std::string_view command);
    void say_asking();
    void enqueue(question& who);
    void enqueue(const slot& next);
    slot& slot_at(std::size_t i) { return slots_[(first_ + i) & (slots_.size() - 1)]; }
    slot take_first();
    void finish(slot& of, failure failed);

    void on_turn_end() override;
    std::string& unsent() { return tls_ ? encrypted() : out_; }
    bool send_some();
    void end_sending();
    task<void> send_rest();

    task<void> read_replies();
    bool receive(std::string_view bytes);
    bool is_message(const reply& said) const;
    void fail_all();
    void close(std::string_view why);

    // How it comes by its connection (link_connection.cpp).
    task<void> run();
    task<bool> connect();
    task<bool> reach(int family, const sockaddr* to, socklen_t size);
    task<bool> connect_to(int family, const sockaddr* to, socklen_t size);
    void limit_time(steady_time until);
    task<void> end_attempt(std::uint64_t mine);
    void lift_limit();
    task<void> log_in();
    task<bool> is_accepted(std::string command, std::string what);
    task<void> pause(std::chrono::microseconds time);
    std::chrono::microseconds backoff();
    std::chrono::microseconds spread(std::chrono::microseconds time);

    // With TLS (link_tls.cpp).
    task<bool> shake_hands(steady_time until);
    task<bool> exchange_hellos();
    task<bool> send_hello();
    std::string& encrypted();
    bool receive_encrypted(std::string_view bytes);
    void hear_last_words();

    steady_time next_alarm();
    task<void> keep_time();
    void sweep(steady_time now);
    task<void> probe();
    void become(state next);

    reactor& reactor_;
    name_resolver& names_;
    const link_options options_;
    listener told_;
    std::string channel_; // subscribed to; empty: none
    std::function<void(std::string_view message)> hear_;

    tcp_socket socket_;
    std::unique_ptr<tls_session> tls_;     // of this connection, when it has one
    std::unique_ptr<reply_reader> reader_; // of this connection
    std::vector<char> in_;
    std::string out_; // commands, from the first byte that has not left
    bool is_sending_ = false;

    std::vector<slot> slots_;           // a ring of the commands without a reply; its size is a power of two
    std::size_t first_ = 0, count_ = 0; // of slots_
    std::size_t waited_for_ = 0;        // how many of them somebody waits for
    std::size_t pending_ = 0;           // of asked_for, the sum
    steady_time last_heard_{};

    steady_timer alarm_; // for the oldest command
    bool is_keeping_time_ = false;
    steady_timer pause_;           // between attempts, or between probes
    unsigned failed_attempts_ = 0; // in a row
    std::size_t timeouts_ = 0;     // in a row
    state state_ = state::connecting;
    std::uint64_t attempt_ = 0; // which one is under way, so that a timer of an earlier one is known
    bool is_late_ = false;      // it has run out of time
    std::string why_;
    counters seen_;
    script_calls calls_;
    std::uint64_t random_;
};

} // namespace headgate::limiter::redis
