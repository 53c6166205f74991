// The event loop of a worker: sockets, timers (timer.hpp) and calls from other threads, in turns of one epoll_wait
// each. It remembers what edge-triggered epoll has said: a read that came up short waits without another system call
// (docs/decisions/0004-reactor.md). Everything but post() belongs to the loop's own thread.
#pragma once

#include "limiter/io/kernel_pipe.hpp"
#include "limiter/io/timer.hpp"

#include <boost/asio/error.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <sys/epoll.h>
#include <vector>

namespace headgate {

class tcp_socket;

// Whose events come first when many sockets are ready. Clients wait for upstreams: what was begun is finished before
// more is begun, so that few requests are under way at a time, their memory is still in the cache, and few upstream
// connections do the work.
enum class socket_turn
{
    first,
    after_others
};

// Something to do once when everyone who was ready has been handled, such as sending what they have all written.
class turn_end
{
public:
    virtual void on_turn_end() = 0;

protected:
    virtual ~turn_end() = default;

private:
    friend class reactor;
    bool is_queued_ = false;
};

// Reads for a reader that waits without a buffer, as soon as there is something: when many sockets are ready, all are
// read before any reader goes on.
class read_ahead
{
public:
    virtual std::size_t on_readable() = 0; // how much it was

protected:
    ~read_ahead() = default;
};

class reactor
{
public:
    reactor();
    ~reactor();
    reactor(const reactor&) = delete;
    reactor& operator=(const reactor&) = delete;

    // Turn after turn, until stop() was called and nobody is left to be gone on with.
    void run();
    // Sockets are not watched any more; timers still end, and who was cancelled goes on.
    void stop() { is_stopped_ = true; }
    // One turn; waits for something to happen, for so long at most.
    void turn(std::chrono::nanoseconds at_most);
    // From any thread: `what` is called in the loop's own, before the sockets of the next turn.
    void post(std::function<void()> what);

    // When this turn began: near enough for deadlines, and free.
    steady_time turn_began() const { return turn_began_; }
    void begin_turn() { turn_began_ = std::chrono::steady_clock::now(); }
    // The time; those who keep step read it once for all of them, when their step begins.
    steady_time now() const { return keeps_step_ ? step_began_ : std::chrono::steady_clock::now(); }
    // Somebody begins in the middle of a step: it has not shared its beginning.
    void read_clock()
    {
        if (keeps_step_)
            step_began_ = std::chrono::steady_clock::now();
    }

    // Calls `what` at the end of this turn. Once, however often it is asked for.
    void at_turn_end(turn_end& what);
    void forget(turn_end& gone);

    // Goes on in the next turn, and not inside somebody else's step.
    void resume_later(std::coroutine_handle<> waiting) { resumed_.push_back(waiting); }
    // co_await reactor.others_first(): goes on after whoever else is ready, at the end of this turn or of the next.
    auto others_first() { return yielding{*this}; }
    // co_await reactor.in_step(): goes on when everyone else who was ready has come as far, or has gone another way.
    // Who does the same thing right after others have done it finds its code, and the kernel's, still in the cache.
    // Does not wait for who is alone, and never beyond this turn.
    auto in_step() { return stepping{*this}; }
    // What goes on now is several who were waiting for the same thing.
    void expect_several() { keep_step(true); }

private:
    friend class tcp_socket;
    friend class steady_timer;
    static constexpr std::size_t batch = 256;
    static constexpr std::size_t most_in_step = 32; // sockets of a group, and who waits for each other

    struct yielding
    {
        reactor& in;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiting) { in.resume_later(waiting); }
        void await_resume() const noexcept {}
    };

    struct stepping
    {
        reactor& in;
        bool await_ready() const noexcept
        {
            if (in.keeps_step_ && in.in_step_.count < most_in_step)
                return false;
            in.read_clock(); // who goes on alone does not share a moment that is past
            return true;
        }
        void await_suspend(std::coroutine_handle<> waiting) { in.in_step_.who[in.in_step_.count++] = waiting; }
        void await_resume() const noexcept {}
    };
    struct step
    {
        std::size_t count = 0;
        std::array<std::coroutine_handle<>, most_in_step> who;
    };
    struct ready_socket
    {
        tcp_socket* who; // null: it has gone meanwhile
        std::uint32_t events;
    };

    bool has_work() const;
    int ask_kernel(std::chrono::nanoseconds at_most);
    void sort_events(int count);
    void take_clients();
    void handle_ready();
    void step_on();
    void keep_step(bool several)
    {
        keeps_step_ = several;
        read_clock();
    }
    void call_posted();
    void resume_all();
    void end_turn();
    void push_waiting(tcp_socket& s, std::uint32_t events);
    void drop_waiting(tcp_socket& s);
    void forget(tcp_socket& gone);

    int set_ = -1;  // of epoll
    int wake_ = -1; // an eventfd: something was posted
    std::array<epoll_event, batch> events_;
    std::array<ready_socket, batch> ready_; // those being handled
    std::size_t next_ = 0, count_ = 0;      // of them
    const tcp_socket* handled_ = nullptr;
    step in_step_; // who waits for the next
    bool keeps_step_ = false;
    steady_time step_began_{}; // while they do
    // Sockets of the later turn that are ready, in order of arrival.
    tcp_socket* first_waiting_ = nullptr;
    tcp_socket* last_waiting_ = nullptr;
    std::vector<turn_end*> ending_;
    std::vector<std::coroutine_handle<>> resumed_, resuming_;
    timer_queue timers_;
    steady_time turn_began_ = std::chrono::steady_clock::now();
    bool is_stopped_ = false;

    std::mutex posting_;
    std::vector<std::function<void()>> posted_; // under posting_
    std::atomic<bool> is_posted_{false};
};

// A non-blocking descriptor, a stream or a listening socket. One coroutine may read and one may write at a time. It
// stays where it is: the kernel holds its address.
class tcp_socket
{
public:
    explicit tcp_socket(reactor& in, socket_turn when = socket_turn::first)
        : reactor_(in), waits_(when == socket_turn::after_others)
    {}
    ~tcp_socket() { close(); }
    tcp_socket(const tcp_socket&) = delete;
    tcp_socket& operator=(const tcp_socket&) = delete;

    // Takes over an open, non-blocking descriptor. The kernel watches it from the first wait on: a connection that
    // brings one request and is closed never needs that.
    void adopt(int fd);
    // The same for a connection that is still being made, watched at once. False when the kernel will not; it is closed
    // then.
    bool adopt_connecting(int fd);
    int native_handle() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }
    // Who waits gets operation_aborted, soon, from the event loop.
    void cancel();
    void close();

    // co_await socket.read_some(...): what is there, or waits for it. The end of the stream is asio::error::eof.
    auto read_some(char* at, std::size_t most) { return read_operation{*this, at, most}; }
    // What is there; nothing when a read would wait, and the next until_readable does wait.
    std::optional<io_result> read_now(char* at, std::size_t most)
    {
        return readable_ && try_read(at, most, nullptr) ? std::optional(read_result_) : std::nullopt;
    }
    // The same through the kernel: what is there goes into the pipe, which is empty.
    std::optional<io_result> read_now(kernel_pipe& into, std::size_t most);
    // Waits until a read might not have to; takes nothing, needs no buffer. A socket that is new, or whose last read
    // filled its buffer, is only believed to be readable: read_now tells. With `ahead`, that has been called when the
    // wait ends without an error.
    auto until_readable(read_ahead* ahead = nullptr) { return read_operation{*this, nullptr, 0, ahead}; }
    // False when the kernel has announced nothing since the last read came up short. It does so only once it watches.
    bool may_be_readable() const { return readable_ || watched_ == 0; }
    // Nothing is left to read, or nobody to accept: the next wait is for an edge.
    void exhausted() { readable_ = ended_; }
    steady_time turn_began() const { return reactor_.turn_began(); }
    // After a send that the kernel did not take all of, or while connecting.
    auto until_writable() { return write_operation{*this}; }

    // Sends what the kernel takes at once; false when the connection is broken. What is left stays in the views.
    bool send_now(std::string_view& first, std::string_view& second, int flags = 0);
    // The same for what a pipe holds.
    bool send_now(kernel_pipe& from);
    // The same for the last bytes that this side sends: they leave together with its end of the stream, in one segment
    // where they fit one.
    bool send_last_now(std::string_view& first, std::string_view& second);

private:
    friend class reactor;

    struct read_operation
    {
        tcp_socket& socket;
        char* at;
        std::size_t most;
        read_ahead* ahead = nullptr;
        bool await_ready() { return (socket.readable_ && socket.try_read(at, most, ahead)) || !socket.watch(); }
        void await_suspend(std::coroutine_handle<> waiting)
        {
            socket.read_at_ = at;
            socket.read_most_ = most;
            socket.ahead_ = ahead;
            socket.reader_ = waiting;
        }
        io_result await_resume() const { return socket.read_result_; }
    };
    struct write_operation
    {
        tcp_socket& socket;
        bool await_ready() const { return !socket.watch_writable(); }
        void await_suspend(std::coroutine_handle<> waiting) { socket.writer_ = waiting; }
        io_result await_resume() const { return socket.write_result_; }
    };

    bool try_read(char* at, std::size_t most, read_ahead* ahead);
    bool watch();
    bool watch_writable();
    bool watch_for(std::uint32_t events);
    std::size_t note(std::uint32_t events);
    void go_on(std::uint32_t events);

    reactor& reactor_;
    int fd_ = -1;
    bool readable_ = true;      // nothing says that a read would wait
    bool ended_ = false;        // the peer has finished or failed: no further edge will say so
    std::uint32_t watched_ = 0; // events that the kernel tells of
    const bool waits_;
    std::uint32_t waiting_events_ = 0; // not 0: in the reactor's list
    tcp_socket *earlier_ = nullptr, *later_ = nullptr;
    std::coroutine_handle<> reader_, writer_;
    bool is_read_ = false; // what reader_ waits for is there
    read_ahead* ahead_ = nullptr;
    char* read_at_ = nullptr;
    std::size_t read_most_ = 0;
    io_result read_result_, write_result_;
};

} // namespace headgate
