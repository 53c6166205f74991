// The load generator: one thread, one epoll set, many connections to one port of this machine.
//
// Closed loop (no rate): a connection sends its next request as soon as it has read its answer, so every connection is
// always busy. Latency is counted from sending to the last byte read.
// Open loop (a rate): request k is due at k / rate whatever happens to the others, and waits when no connection is
// free. Latency is counted from the due time to the last byte read, so a pause counts for every request that it delays.
#pragma once

#include "bench/load/answer.hpp"
#include "bench/load/histogram.hpp"
#include "bench/load/options.hpp"
#include "bench/load/requests.hpp"

#include <chrono>
#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace load {

using clock = std::chrono::steady_clock;

struct result
{
    double seconds = 0;
    std::uint64_t requests = 0; // answered in the measured time
    std::uint64_t bytes = 0;    // of answers
    std::uint64_t errors = 0;   // connections that broke or were refused
    std::uint64_t unfinished = 0;
    std::map<int, std::uint64_t> statuses;
    std::vector<std::uint64_t> cpu_nanoseconds; // of each watched process
    histogram latency;
    histogram lateness; // open loop: from the due time to sending; shows when the load generator itself is too slow
};

// Writes one JSON object and the end of the line to standard output.
void print(const result& measured);

class client
{
public:
    // With `beside` the thread never sleeps: instead of waiting it calls `beside` again and again, which returns
    // whether it had something to do.
    explicit client(const options& chosen, std::function<bool()> beside = {});
    ~client();

    // Makes one request on every connection. Returns false when that does not succeed within a minute.
    bool connect_all();
    result run();

private:
    struct connection
    {
        int fd = -1;
        bool busy = false;
        bool silent = false; // one of the idle ones
        std::size_t sent = 0;
        clock::time_point due;
        std::string out;
        answer coming;
    };

    void start(connection& one, clock::time_point due);
    void open(connection& one);
    void flush(connection& one);
    void on_event(connection& one);
    void finish(connection& one);
    void fail(connection& one);
    void close(connection& one);
    void wait_until(clock::time_point when);
    int take_events(const timespec& timeout);
    void start_what_is_due(clock::time_point now);
    void begin_measuring(clock::time_point now);
    void end_measuring(clock::time_point now);
    void drain(clock::time_point now);
    std::size_t count_busy() const;
    bool has_failed() const { return result_.errors > 1000 + result_.requests / 10; }
    void start_next(connection& one);

    const options& chosen_;
    std::function<bool()> beside_;
    requests requests_;
    int set_;
    std::vector<connection> all_; // the busy ones first
    std::deque<connection*> free_;
    std::deque<clock::time_point> backlog_; // requests that are due while no connection is free
    std::uint64_t scheduled_ = 0;
    std::size_t primed_ = 0;
    clock::time_point started_, begin_, end_;
    enum class phase
    {
        priming,
        warming,
        measuring,
        draining
    } phase_ = phase::priming;
    std::vector<std::uint64_t> cpu_before_;
    result result_;
};

} // namespace load
