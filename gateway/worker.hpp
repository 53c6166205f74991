// One thread, one event loop, and what they own: listeners' sockets, sessions, deadlines, spare exchanges, counters.
// Nothing here is shared but the immutable compiled_config and the stores' shards.
#pragma once

#include "gateway/admin/worker_metrics.hpp"
#include "gateway/buffer_pool.hpp"
#include "gateway/clock.hpp"
#include "gateway/compiled/config.hpp"
#include "gateway/counter.hpp"
#include "gateway/log/access_log.hpp"
#include "gateway/request/exchange.hpp"
#include "limiter/io/deadline.hpp"
#include "limiter/io/kernel_pipe.hpp"
#include "limiter/io/name_resolver.hpp"
#include "limiter/io/reactor.hpp"
#include "limiter/io/task.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/smart_ptr/local_shared_ptr.hpp>

#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

namespace headgate {

class session;
class listener;
class shared_store;
class store_health;
class upstream;

struct worker_counters
{
    counter connections; // open now
    counter accepted;
    counter refused_connections; // over a cap, or out of file descriptors
    counter requests;            // begun
    counter finished;
    counter limited;  // refused by a rule
    counter degraded; // judged by shared counters
};

class worker
{
public:
    worker(unsigned number, const gateway_clock& clock, std::shared_ptr<const compiled_config> setup, log_writer& log,
           store_health& health);
    ~worker();

    unsigned number() const { return number_; }
    reactor& sockets() { return reactor_; }
    deadlines& timeouts() { return deadlines_; }
    name_resolver& names() { return names_; }
    const gateway_clock& clock() const { return clock_; }
    worker_counters& counters() { return counters_; }
    const worker_counters& counters() const { return counters_; }
    worker_metrics& metrics() { return metrics_; }
    const worker_metrics& metrics() const { return metrics_; }
    access_log& access() { return access_; }
    http::address_texts& address_texts() { return address_texts_; }

    // Only on the worker's own thread, or before it runs.
    const std::shared_ptr<const compiled_config>& setup() const { return setup_; }
    void add_listener(std::unique_ptr<listener> l);
    std::unique_ptr<exchange> take_exchange();
    void give_back(std::unique_ptr<exchange> x);
    buffer_pool& buffers() { return buffers_; }
    pipe_pool& pipes() { return pipes_; }
    void enter(session& s);
    void leave(session& s);
    bool is_draining() const { return draining_; }
    // "Date: ..." value, made anew once a second.
    std::string_view http_date();
    // Writes 32 characters.
    void new_request_id(char* out);
    // Anything from 0 to `most`, to spread things out; not a secret.
    std::uint64_t any_up_to(std::uint64_t most);
    // The connections of the upstream that the request's route leads to; not for an echo.
    boost::local_shared_ptr<upstream> upstream_of(const exchange& x);
    // Where the chain's counters are, when they are in Redis; null when that is no longer configured.
    std::shared_ptr<shared_store> store_of(const exchange& x, const compiled_chain& chain) const;
    deadline_list& watch_list() { return watch_list_; }

    // From any thread.
    void start_thread();
    void join();
    void use(std::shared_ptr<const compiled_config> next);
    // Stops accepting; idle clients are let go, the others finish their request.
    void drain();
    void stop();
    std::size_t open_sessions() const { return counters_.connections.read(); }

private:
    task<void> tick();
    boost::local_shared_ptr<upstream> connections_to(const compiled_upstream& wanted);
    std::shared_ptr<shared_store> store_for(const compiled_shared_store& wanted);
    void adopt(std::shared_ptr<const compiled_config> next);
    void renew_slots();

    unsigned number_;
    const gateway_clock& clock_;
    reactor reactor_;
    steady_timer ticker_;
    deadlines deadlines_;
    deadline_list& watch_list_ = deadlines_.list_for(std::chrono::seconds{1});
    name_resolver names_; // tells reactor_ what it finds, so it goes first
    std::shared_ptr<const compiled_config> setup_;
    std::vector<std::unique_ptr<listener>> listeners_;
    std::vector<boost::local_shared_ptr<upstream>> upstreams_; // by the compiled_config's number; null: an echo
    std::vector<std::shared_ptr<shared_store>> shared_stores_; // by the compiled_config's number
    store_health& health_;
    std::chrono::steady_clock::time_point renewed_{};
    std::vector<std::unique_ptr<exchange>> spare_;
    buffer_pool buffers_;
    pipe_pool pipes_;
    struct session_list;
    std::unique_ptr<session_list> sessions_;
    worker_counters counters_;
    worker_metrics metrics_;
    access_log access_;
    http::address_texts address_texts_;
    bool draining_ = false, stopping_ = false;
    std::int64_t date_second_ = 0;
    std::array<char, 32> date_{};
    std::array<char, 16> id_prefix_{}; // of this worker, in hex
    std::uint64_t id_next_ = 0;
    std::uint64_t random_state_ = 0;
    std::thread thread_;
};

} // namespace headgate
