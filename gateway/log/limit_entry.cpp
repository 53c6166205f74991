#include "gateway/log/limit_entry.hpp"

#include "gateway/request/request.hpp"
#include "limiter/siphash.hpp"

#include <tuple>

namespace headgate {

namespace {

log_entry::verdict verdict_of(const limit_outcome& limit)
{
    using enum log_entry::verdict;
    if (limit.blocked.rules)
        return blocked;
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

// The rule that says most, and its key.
struct deciding_rule
{
    const limiter::rule* rule = nullptr; // null: no rule was evaluated
    const compiled_rules* rules = nullptr;
    std::string_view key;
    std::uint64_t used = 0, quota = 0;
};

deciding_rule find_deciding_rule(const request& r)
{
    const auto& limit = r.limits.outcome;
    if (limit.blocked.rules)
        return {limit.blocked.rule, limit.blocked.rules, limit.blocked.text};
    deciding_rule found;
    std::size_t best = 0, at = 0;
    for (const auto& chain : std::span(r.memory->chains).first(limit.chains)) {
        for (std::size_t k = 0; k < chain.count; ++k) {
            for (std::size_t i = 0; i < chain.keys[k].judged->size(); ++i, ++at) {
                if (!found.rule || weight_of(limit, at) > weight_of(limit, best)) {
                    best = at;
                    found = {limit.rules[at], chain.keys[k].rules, chain.parts[k].key};
                }
            }
        }
    }
    const auto& said = limit.decisions[best];
    if (found.rule) {
        found.used = said.limit - std::min(said.limit, said.remaining);
        found.quota = said.limit;
    }
    return found;
}

} // namespace

void add_limits(log_entry& entry, const request& r, bool with_rule)
{
    entry.limit = verdict_of(r.limits.outcome);
    const auto by = with_rule ? find_deciding_rule(r) : deciding_rule{};
    if (!by.rule)
        return;
    entry.rule = by.rule->name;
    auto& identity = r.memory->key_value;
    identity.clear();
    append_identity(identity, by.rules->key, by.key);
    entry.identity = identity.view();
    // The same key has the same hash in every gateway, so that lines of several can be read together; it is no secret,
    // but it shows no API key.
    entry.key_hash = limiter::siphash({}, 0, by.key);
    entry.used = by.used;
    entry.quota = by.quota;
}

} // namespace headgate
