// One thread, its event loop, and what they own: listeners, sessions, requests, deadlines, memory pools, counters.
// Workers share only the immutable compiled configuration and the stores.
#pragma once

#include "gateway/admin/worker_metrics.hpp"
#include "gateway/buffer_pool.hpp"
#include "gateway/client/session.hpp"
#include "gateway/clock.hpp"
#include "gateway/compiled/config.hpp"
#include "gateway/counter.hpp"
#include "gateway/http/message.hpp"
#include "gateway/log/access_log.hpp"
#include "gateway/object_pool.hpp"
#include "gateway/request/request.hpp"
#include "limiter/io/deadline.hpp"
#include "limiter/io/event_loop.hpp"
#include "limiter/io/kernel_pipe.hpp"
#include "limiter/io/name_resolver.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/smart_ptr/local_shared_ptr.hpp>

#include <memory>
#include <string_view>
#include <thread>
#include <vector>

namespace headgate {

class listener;
struct wanted_listener;
class shared_store;
class store_health;
class upstream;

struct worker_counters
{
    counter connections; // open now
    counter accepted;
    counter refused_connections; // over a cap, or out of file descriptors
    counter requests;            // started
    counter finished;
    counter limited;  // refused by a rule
    counter degraded; // decided by shared overflow counters or by on_outage
};

class worker
{
public:
    worker(unsigned number, const gateway_clock& clock, std::shared_ptr<const compiled_config> config, log_writer& log,
           store_health& health);
    ~worker();

    unsigned number() const { return number_; }
    event_loop& loop() { return loop_; }
    deadlines& timeouts() { return deadlines_; }
    // Deadlines at which a session checks whether its client is still connected while its request waits.
    deadline_list& watch_list() { return watch_list_; }
    name_resolver& names() { return names_; }
    const gateway_clock& clock() const { return clock_; }
    worker_counters& counters() { return counters_; }
    const worker_counters& counters() const { return counters_; }
    worker_metrics& metrics() { return metrics_; }
    const worker_metrics& metrics() const { return metrics_; }
    access_log& access() { return access_; }
    http::address_texts& address_texts() { return address_texts_; }

    // REQUIRES: called on the worker's thread, or before it runs.
    const std::shared_ptr<const compiled_config>& config() const { return config_; }
    // Opens the listeners that are new, then closes those that are not wanted any more: their idle connections are
    // closed, those with a request after its answer.
    void listen(std::vector<wanted_listener> wanted);
    object_pool<http::message>& http1_messages() { return http1_messages_; }
    object_pool<request_memory>& request_memories() { return request_memories_; }
    buffer_pool& buffers() { return buffers_; }
    pipe_pool& pipes() { return pipes_; }
    void enter(session& s);
    void leave(session& s);
    void enter(request& r);
    void leave(request& r);
    // Returns the value of a Date field; it is made once per second.
    std::string_view http_date();
    // Writes 32 characters and returns them.
    std::string_view new_request_id(char* out);
    // Returns a random number from 0 to `most`, to spread timers; not for secrets.
    std::uint64_t any_up_to(std::uint64_t most);
    // Returns the connections of the upstream that the request's route leads to. REQUIRES: it is not the echo.
    boost::local_shared_ptr<upstream> upstream_of(const request& r);
    // Returns the store in Redis that has the chain's counters; nullptr when it is no longer configured.
    std::shared_ptr<shared_store> store_of(const request& r, const compiled_chain& chain) const;

    // May be called from any thread.
    void start_thread();
    void join();
    void use(std::shared_ptr<const compiled_config> next, std::vector<wanted_listener> listeners);
    // Stops accepting and closes idle connections; sessions with a request finish it.
    void drain();
    void stop();
    std::size_t open_sessions() const { return counters_.connections.read(); }

private:
    task<> tick();
    void show_upstreams();
    void show_stores();
    boost::local_shared_ptr<upstream> connections_to(const compiled_upstream& wanted);
    std::shared_ptr<shared_store> store_for(const compiled_shared_store& wanted);
    void adopt(std::shared_ptr<const compiled_config> next);
    void let_go();
    void cut_all();

    template <class T>
    using list = boost::intrusive::list<T, boost::intrusive::constant_time_size<false>>;

    unsigned number_;
    const gateway_clock& clock_;
    event_loop loop_;
    steady_timer ticker_;
    deadlines deadlines_;
    deadline_list& watch_list_ = deadlines_.list_for(std::chrono::seconds{1});
    name_resolver names_; // it posts results to loop_, so it is destroyed first
    object_pool<http::message> http1_messages_;
    object_pool<request_memory> request_memories_;
    buffer_pool buffers_;
    pipe_pool pipes_;
    std::shared_ptr<const compiled_config> config_;
    std::vector<boost::local_shared_ptr<listener>> listeners_;
    std::vector<boost::local_shared_ptr<upstream>> upstreams_; // by the configuration's number; null: an echo
    std::vector<std::shared_ptr<shared_store>> shared_stores_; // by the configuration's number
    store_health& health_;
    list<session> sessions_;
    list<request> requests_;
    worker_counters counters_;
    worker_metrics metrics_;
    access_log access_;
    http::address_texts address_texts_;
    bool is_running_ = false, is_draining_ = false, is_stopping_ = false;
    std::int64_t date_second_ = 0;
    std::array<char, 32> date_{};
    std::array<char, 16> id_prefix_{}; // of this worker, in hex
    std::uint64_t id_next_ = 0;
    std::uint64_t random_state_ = 0;
    std::thread thread_;
};

} // namespace headgate
