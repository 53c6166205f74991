#include "gateway/request/log_request.hpp"

#include "gateway/request/request.hpp"
#include "gateway/worker.hpp"
#include "limiter/siphash.hpp"

#include <tuple>

namespace headgate {

namespace {

using http::http_error;
using std::chrono::microseconds;

constexpr unsigned client_left = 499; // as nginx logs it: no client was there to take an answer

microseconds between(steady_time from, steady_time to)
{
    return to == steady_time{} ? microseconds{-1} : std::chrono::duration_cast<microseconds>(to - from);
}

std::string_view value_of(const request& r, http::field_id id)
{
    const auto* field = r.head().fields.find(id);
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

// How much a decision says about what became of the request: a refusal most, then a wait, then what a shadow rule would
// have refused, then the least that is left.
auto weight_of(const limit_outcome& limit, std::size_t i)
{
    const auto& said = limit.decisions[i];
    const bool shadow = limit.rules[i]->shadow;
    const int rank = !said.admitted && !shadow ? 3 : said.delay.count() > 0 && !shadow ? 2 : !said.admitted ? 1 : 0;
    const auto wait = rank == 3 ? said.retry_after : said.delay;
    return std::tuple(rank, wait.count(), -static_cast<double>(said.remaining) / static_cast<double>(said.limit));
}

// Adds the rule that says most, and whose counter it was. The same key has the same hash in every gateway, so that
// lines of several can be read together; it is no secret, but it shows no API key.
void add_deciding_rule(log_entry& entry, const request& r)
{
    const auto& limit = r.limits.outcome;
    std::size_t best = 0, at = 0;
    std::string_view key;
    const compiled_rules* rules = nullptr;
    for (const auto& chain : std::span(r.memory->chains).first(limit.chains)) {
        for (std::size_t k = 0; k < chain.count; ++k) {
            for (std::size_t i = 0; i < chain.keys[k].judged->size(); ++i, ++at) {
                if (!key.data() || weight_of(limit, at) > weight_of(limit, best)) {
                    best = at;
                    key = chain.parts[k].key;
                    rules = chain.keys[k].rules;
                }
            }
        }
    }
    if (!key.data())
        return;
    const auto& said = limit.decisions[best];
    entry.rule = limit.rules[best]->name;
    auto& identity = r.memory->key_value;
    identity.clear();
    append_identity(identity, rules->key, key);
    entry.identity = identity.view();
    entry.key_hash = limiter::siphash({}, 0, key);
    entry.quota = said.limit;
    entry.used = said.limit - std::min(said.limit, said.remaining);
}

log_entry make_entry(const request& r, const access_log& log, std::string_view client, microseconds took)
{
    const auto& received = r.received;
    const auto& record = r.record;
    const auto& sent = r.client.transferred();
    const bool is_understood = !received.path.empty(); // else the target is logged as it came
    log_entry entry{
        .began = log.to_wall(received.began),
        .client = client,
        .method = r.head().method,
        .host = received.host,
        .path = is_understood ? received.path : r.head().target,
        .query = is_understood ? received.target.query : std::string_view{},
        .minor_version = r.head().minor_version,
        .status = record.status == 0 ? client_left : record.status,
        .bytes_in = sent.in,
        .bytes_out = sent.out,
        .body_out = record.body_out,
        .server = record.server,
        .request_id = received.id,
        .duration = took,
        .connect = between(received.began, record.sent),
        .first_byte = between(received.began, record.answered),
        .limit = verdict_of(r.limits.outcome),
    };
    if (log.wants_rule())
        add_deciding_rule(entry, r);
    if (record.error != http_error::none)
        entry.error = http::describe(record.error).code;
    if (received.route) {
        entry.route = received.route->name;
        entry.upstream = received.route->config->upstream;
    }
    if (log.wants_client_fields()) {
        entry.referer = value_of(r, http::field_id::referer);
        entry.agent = value_of(r, http::field_id::user_agent);
    }
    return entry;
}

} // namespace

void log_request(request& r)
{
    auto& on = r.worker;
    if (r.record.status == 0)
        r.record.error = http_error::client_gone;
    const auto took = between(r.received.began, std::chrono::steady_clock::now());
    on.counters().finished.add();
    on.metrics().count(r, took);
    auto& log = on.access();
    if (log.is_on())
        log.add(make_entry(r, log, on.address_texts().of(r.received.client.address), took));
}

} // namespace headgate
