// The load: one thread, one epoll, many connections to one port of this machine.
//
// Closed loop (no rate): a connection sends its next request when it has its answer. What comes out is capacity.
// Open loop (a rate): request k is due at k / rate whatever happens to the others, and what it waits for a free
// connection is part of its latency (bench/load/latency.hpp).
#pragma once

#include "bench/load/answer.hpp"
#include "bench/load/calm.hpp"
#include "bench/load/histogram.hpp"
#include "bench/load/latency.hpp"
#include "bench/load/missing_time.hpp"
#include "bench/load/options.hpp"
#include "bench/load/requests.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace load {

struct result
{
    double seconds = 0;
    std::uint64_t requests = 0; // answered in the measured time
    std::uint64_t bytes = 0;    // of answers
    std::uint64_t errors = 0;   // connections that broke or were refused
    std::uint64_t unfinished = 0;
    std::map<int, std::uint64_t> statuses;
    std::vector<std::uint64_t> cpu_nanoseconds; // of each watched process
    std::uint64_t unstamped = 0; // the kernel did not say when they came: they count until they were read
    latencies took;
    std::optional<calm_latencies::summary> calm; // where it is known which moments were
    histogram lateness; // open loop: how much after its due time a request was sent; our own slowness shows here
};

// One JSON object and the end of the line on standard output.
void print(const result& said);

class client
{
public:
    // With `beside`, the thread never sleeps: where it would wait it calls that instead, again and again. It says
    // whether there was anything to do.
    explicit client(const options& chosen, std::function<bool()> beside = {});
    ~client();

    // Every connection makes one request. False when that does not succeed within a minute.
    bool connect_all();
    result run();

private:
    struct connection
    {
        int fd = -1;
        bool busy = false;
        bool silent = false; // one of the idle ones
        std::size_t sent = 0;
        request_times times;
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
    void spin_until(clock::time_point when);
    int take_events(const timespec& timeout);
    void start_what_is_due(clock::time_point now);
    void begin_measuring(clock::time_point now);
    void end_measuring(clock::time_point now);
    std::size_t count_busy() const;
    void add_latency(clock::time_point due, const latency& took);
    void start_next(connection& one);
    clock::time_point look_at_cores(clock::time_point now);

    const options& chosen_;
    std::function<bool()> beside_;
    requests requests_;
    std::optional<missing_time> missing_; // where somebody has said who fills which cores
    int set_;
    std::vector<connection> all_; // the busy ones first
    std::deque<connection*> free_;
    std::deque<clock::time_point> backlog_; // due, and no connection is free
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
    calm_latencies calm_;
    result result_;
};

} // namespace load
