#include "gateway/request/log_request.hpp"

#include "gateway/request/limit.hpp"
#include "gateway/request/session.hpp"
#include "limiter/siphash.hpp"

namespace headgate {

namespace {

using http::http_error;
using std::chrono::microseconds;

constexpr unsigned client_left = 499; // what nginx's users look for: nobody was there to take an answer

microseconds between(steady_time from, steady_time to)
{
    return to == steady_time{} ? microseconds{-1} : std::chrono::duration_cast<microseconds>(to - from);
}

std::string_view value_of(const exchange& x, http::field_id id)
{
    const auto* field = x.head().fields.find(id);
    return field ? field->value : std::string_view{};
}

log_entry::verdict verdict_of(const limit_outcome& limit)
{
    using enum log_entry::verdict;
    if (limit.refused)
        return refused;
    if (limit.degraded)
        return degraded;
    if (limit.delay.count() > 0)
        return delayed;
    if (limit.shadow_refused)
        return shadow_refused;
    return limit.count > 0 ? passed : none;
}

// The same key has the same hash in every gateway, so that lines of several can be read together; it is no secret, but
// it shows nobody's API key.
std::uint64_t hash_for_log(std::string_view key) { return limiter::siphash({}, 0, key); }

void add_deciding_rule(log_entry& entry, const exchange& x)
{
    const limiter::decision* said = nullptr;
    std::string_view key;
    const auto* rule = find_deciding_rule(x, said, key);
    if (!rule)
        return;
    entry.rule = rule->name;
    entry.key_hash = hash_for_log(key);
    entry.quota = said->limit;
    entry.used = said->limit - std::min(said->limit, said->remaining);
}

log_entry make_entry(const exchange& x, const access_log& log, std::string_view client, microseconds took)
{
    const auto& said = x.outcome;
    log_entry entry{
        .began = log.to_wall(x.began),
        .client = client,
        .method = x.head().method,
        .host = x.host,
        .path = x.path.empty() ? x.head().target : x.path, // not understood: as it came
        .query = x.path.empty() ? std::string_view{} : x.target.query,
        .minor_version = x.head().minor_version,
        .status = said.status == 0 ? client_left : said.status,
        .bytes_in = x.parser.consumed() + x.body_bytes,
        .bytes_out = said.bytes_out,
        .body_out = said.bytes_out > said.body_from ? said.bytes_out - said.body_from : 0,
        .server = said.server,
        .request_id = x.request_id_view(),
        .duration = took,
        .connect = between(x.began, said.asked),
        .first_byte = between(x.began, said.answered),
        .limit = verdict_of(x.limit),
    };
    if (log.wants_rule())
        add_deciding_rule(entry, x);
    if (said.error != http_error::none)
        entry.error = http::describe(said.error).code;
    if (x.route) {
        entry.route = x.route->name;
        entry.upstream = x.route->config->upstream;
    }
    if (log.wants_client_fields()) {
        entry.referer = value_of(x, http::field_id::referer);
        entry.agent = value_of(x, http::field_id::user_agent);
    }
    return entry;
}

} // namespace

void log_request(session& client, exchange& x)
{
    auto& owner = client.owner();
    if (x.outcome.status == 0)
        x.outcome.error = http_error::client_gone;
    const auto ended = x.outcome.ended == steady_time{} ? owner.sockets().now() : x.outcome.ended;
    if (x.outcome.came_whole)
        x.outcome.answered = ended;
    const auto took = between(x.began, ended);
    owner.counters().finished.add();
    owner.metrics().count(x, took);
    auto& log = owner.access();
    if (log.is_on())
        log.add(make_entry(x, log, owner.address_texts().of(x.client.address), took));
}

} // namespace headgate
