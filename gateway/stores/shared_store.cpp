#include "gateway/stores/shared_store.hpp"

#include "gateway/stores/store_health.hpp"
#include "gateway/worker.hpp"
#include "limiter/redis/client/cluster.hpp"
#include "limiter/redis/client/sentinel.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>

namespace headgate {

namespace {

namespace redis = limiter::redis;

// After this time the requests in flight of a gateway that died are no longer counted; a running gateway renews its
// own.
constexpr std::chrono::seconds held_for{60};
// How long /readyz shows an error reply. It does not wait for a successful decision, because a gateway that is not
// ready gets no requests.
constexpr std::chrono::seconds refusals_matter_for{5};
// Script texts that are sent within this time after a connection was opened again mean that the server has lost them.
constexpr std::chrono::seconds soon{2};

redis::link_options link_options_of(const compiled_shared_store& store)
{
    const auto& from = *store.config;
    redis::link_options to;
    to.tls = store.tls;
    to.tls_name = from.tls ? from.tls->server_name : std::string();
    to.socket = from.url.socket;
    if (!from.url.servers.empty()) {
        to.host = from.url.servers.front().host;
        to.port = from.url.servers.front().port;
    }
    to.username = from.username.empty() ? from.url.username : from.username;
    to.password = from.password.empty() ? from.url.password.reveal() : from.password.reveal();
    to.database = from.url.database;
    to.timeout = from.timeout;
    to.connect_timeout = from.connect_timeout;
    to.failures_to_rest = static_cast<unsigned>(from.breaker.failures);
    to.probe_interval = from.breaker.probe_interval;
    return to;
}

std::shared_ptr<redis::link_source> make_links(worker& owner, const compiled_shared_store& from,
                                               redis::link::listener on_change)
{
    auto options = link_options_of(from);
    const auto& url = from.config->url;
    std::vector<redis::server_address> servers;
    for (const auto& server : url.servers)
        servers.push_back({server.host, server.port});
    if (url.shape == config::redis_url::topology::single)
        return std::make_shared<redis::single_link>(
            std::make_shared<redis::link>(owner.loop(), owner.names(), std::move(options), std::move(on_change)));
    if (url.shape == config::redis_url::topology::cluster)
        return std::make_shared<redis::cluster_links>(
            owner.loop(), owner.names(),
            redis::cluster_options{.seeds = std::move(servers), .node = std::move(options)}, std::move(on_change));
    redis::sentinel_options with{.sentinels = std::move(servers), .master = url.master, .server = std::move(options)};
    with.sentinel.timeout = with.server.connect_timeout;
    with.sentinel.connect_timeout = with.server.connect_timeout;
    with.sentinel.tls = with.server.tls;
    with.sentinel.tls_name = with.server.tls_name;
    return std::make_shared<redis::sentinel_master>(owner.loop(), owner.names(), std::move(with), std::move(on_change));
}

std::uint64_t any_holder()
{
    std::random_device device;
    return ((std::uint64_t{device()} << 32 | device()) & ((std::uint64_t{1} << 52) - 1)) + 1;
}

// Returns whether both are probably the same database, where keys have the same names: then requests in flight go on
// under their holder, and corrections that have failed are repeated.
bool has_the_same_keys(const config::store_config& one, const config::store_config& other)
{
    const auto& a = one.url;
    const auto& b = other.url;
    const bool share_a_server = std::any_of(a.servers.begin(), a.servers.end(), [&](const auto& server) {
        return std::find(b.servers.begin(), b.servers.end(), server) != b.servers.end();
    });
    return one.hash_keys == other.hash_keys && a.shape == b.shape && a.database == b.database && a.master == b.master &&
           a.socket == b.socket && (share_a_server || !a.socket.empty());
}

// Returns the state as text for the log and for /readyz.
std::string describe(redis::link::state state, std::string_view why, bool is_cluster)
{
    const auto because = why.empty() ? std::string() : ": " + std::string(why);
    switch (state) {
    case redis::link::state::connecting:
        return "the connection broke" + because;
    case redis::link::state::waiting:
        return "cannot connect" + because;
    case redis::link::state::resting:
        return "left alone for now" + because;
    case redis::link::state::ready:
        return is_cluster && !why.empty() ? "some keys are out of reach" + because : std::string(why);
    default:
        return {};
    }
}

// Of a cluster, every server more that is out of reach is worse: why() lists them.
unsigned severity_of(redis::link::state state, std::string_view why)
{
    if (state != redis::link::state::ready)
        return store_health::outage + (state == redis::link::state::connecting ? 0u : 1u);
    return 1 + static_cast<unsigned>(std::count(why.begin(), why.end(), ';'));
}

} // namespace

shared_store::shared_store(worker& owner, const compiled_shared_store& from, store_health& health,
                           const shared_store* former)
    : worker_(owner), name_(from.name), config_(*from.config), health_(health),
      store_(make_links(owner, from, [this](redis::link::state state, std::string_view why) { tell(state, why); }),
             redis::holder{any_holder(), held_for},
             from.config->hash_keys ? redis::key_form::always_digest : redis::key_form::plain_when_short, {},
             former && has_the_same_keys(*from.config, former->config()) ? former->store_.state() : nullptr)
{
    fails("not connected yet");
    store_.links().begin();
}

void shared_store::tell(redis::link::state state, std::string_view why)
{
    if (state == redis::link::state::stopped)
        return;
    is_refused_ = false;
    if (state == redis::link::state::ready && why.empty() && std::exchange(has_stood_, true))
        came_back_ = worker_.loop().turn_began();
    show(state, why);
}

// Tells /readyz, and the log what changes for the gateway.
void shared_store::show(redis::link::state state, std::string_view why)
{
    const auto words = describe(state, why, config_.url.shape == config::redis_url::topology::cluster);
    if (words.empty()) {
        if (health_.answers(name_, this, config_.url.text))
            spdlog::info("store {}: connected to {}", name_, config_.url.text);
        return;
    }
    // A restriction, such as that only a part of a cluster answers, is the same for other gateways.
    const bool refuses = state != redis::link::state::ready && config_.outage == config::on_outage::closed;
    if (health_.fails(name_, this, {words, refuses, severity_of(state, why)}))
        spdlog::warn("store {}: {}: {}", name_, config_.url.text, words);
}

void shared_store::fails(std::string why)
{
    health_.fails(name_, this, {std::move(why), config_.outage == config::on_outage::closed});
}

void shared_store::tick()
{
    const auto now = worker_.loop().turn_began();
    if (is_refused_ && now - refused_ > refusals_matter_for) {
        is_refused_ = false;
        show(store_.links().now(), store_.links().why());
    }
    // A server that has lost our scripts when we connect again has probably lost the counters too.
    const auto texts = store_.seen().texts_sent;
    if (texts > texts_ && came_back_ && now - *came_back_ < soon) {
        came_back_.reset();
        if (health_.may_tell_of_lost_scripts(name_, now))
            spdlog::warn(
                "store {}: Redis does not know our scripts any more: it was restarted, or another server took its "
                "place; what was counted may be lost",
                name_);
    }
    texts_ = texts;
    if (!std::exchange(is_maintaining_, true))
        spawn(worker_.loop().get_executor(), maintain());
}

shared_store::~shared_store() { stop(); }

void shared_store::stop()
{
    store_.links().stop();
    health_.leave(name_, this);
}

void shared_store::note_failure(redis::trouble why)
{
    worker_.metrics().of_store(name_).failures.add();
    ++unlogged_;
    const auto now = worker_.loop().turn_began();
    if (why == redis::trouble::refused) {
        refused_ = now;
        if (!std::exchange(is_refused_, true))
            fails("Redis says " + std::string(store_.last_error_text()));
    }
    if (why == redis::trouble::unreachable || now - logged_ < std::chrono::seconds{1})
        return; // the link has logged why it is not connected
    logged_ = now;
    const auto failures = health_.count_failures(name_, std::exchange(unlogged_, 0), now);
    if (!failures)
        return; // another worker has logged it
    const bool is_error = why == redis::trouble::refused;
    spdlog::warn("store {}: {}{} ({} decisions since the last such line)", name_,
                 is_error ? "Redis says " : "no decision: ", is_error ? store_.last_error_text() : name_of(why),
                 *failures);
}

void shared_store::correct(std::shared_ptr<const void> rules, const limiter::part& as_charged,
                           std::span<const std::uint64_t> actual, limiter::time_point charged_at, std::uint64_t holder)
{
    std::vector<std::uint64_t> charged(as_charged.costs.begin(), as_charged.costs.end());
    std::vector<std::uint64_t> corrected(actual.begin(), actual.end());
    spawn(worker_.loop().get_executor(), correct_now(std::move(rules), as_charged.group, std::string(as_charged.key),
                                                     std::move(charged), std::move(corrected), charged_at, holder));
}

task<> shared_store::correct_now(std::shared_ptr<const void> rules, const limiter::rule_group* group, std::string key,
                                 std::vector<std::uint64_t> charged, std::vector<std::uint64_t> actual,
                                 limiter::time_point charged_at, std::uint64_t holder)
{
    const auto keep = shared_from_this();
    const limiter::part as_charged{group, key, charged};
    const auto trouble = co_await store_.correct(std::move(rules), *group, as_charged, actual, charged_at, holder);
    if (trouble == redis::trouble::none)
        co_return;
    worker_.metrics().of_store(name_).pending_corrections.set(store_.pending_corrections());
    note_failure(trouble);
}

task<> shared_store::maintain()
{
    const auto keep = shared_from_this();
    co_await store_.maintain();
    is_maintaining_ = false;
}

} // namespace headgate
