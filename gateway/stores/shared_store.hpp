// One worker's part of a store that several gateways share: its connection to Redis, its calls and their results. Made
// once and kept over reloads that do not change it.
#pragma once

#include "config/model.hpp"
#include "gateway/counter.hpp"
#include "limiter/redis/store.hpp"

#include <memory>
#include <optional>
#include <string>

namespace headgate {

class worker;
class store_health;
struct compiled_shared_store;

class shared_store : public std::enable_shared_from_this<shared_store>
{
public:
    // `former`: the store that this one replaces after a reload; null: none.
    shared_store(worker& owner, const compiled_shared_store& from, store_health& health, const shared_store* former);
    ~shared_store();

    const std::string& name() const { return name_; }
    const config::store_config& config() const { return config_; }
    limiter::redis::store& store() { return store_; }

    // Counts a call without a decision, and logs it at most once per second.
    void note_failure(limiter::redis::trouble why);

    // Settles a charge in the background; the request does not wait for it. `rules` keeps what the part points to;
    // `holder` is that of the verdict.
    void correct(std::shared_ptr<const void> rules, const limiter::part& as_charged,
                 std::span<const std::uint64_t> actual, limiter::time_point charged_at, std::uint64_t holder);

    // Called by the worker, ten times per second.
    void tick();

    void stop();

private:
    void tell(limiter::redis::link::state state, std::string_view why);
    void show(limiter::redis::link::state state, std::string_view why);
    void fails(std::string why);
    task<> correct_now(std::shared_ptr<const void> rules, const limiter::rule_group* group, std::string key,
                       std::vector<std::uint64_t> charged, std::vector<std::uint64_t> actual,
                       limiter::time_point charged_at, std::uint64_t holder);
    task<> maintain();

    worker& worker_;
    std::string name_;
    config::store_config config_;
    store_health& health_;
    limiter::redis::store store_;
    steady_time logged_{};
    std::uint64_t unlogged_ = 0;
    steady_time refused_{}; // when Redis last answered with an error
    bool is_refused_ = false;
    std::uint64_t texts_ = 0; // script texts sent until the last tick
    bool has_stood_ = false;  // the connection was open before
    std::optional<steady_time> came_back_;
    bool is_maintaining_ = false;
};

} // namespace headgate
