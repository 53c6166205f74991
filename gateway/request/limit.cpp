#include "gateway/request/limit.hpp"

#include "gateway/request/guard.hpp"
#include "gateway/request/identify.hpp"
#include "gateway/request/request.hpp"
#include "gateway/request/respond.hpp"
#include "gateway/request/settle.hpp"
#include "gateway/stores/shared_store.hpp"
#include "gateway/worker.hpp"

#include <algorithm>

namespace headgate {

namespace {

using http::http_error;
using limiter::redis::trouble;

bool is_exempt(const request& r)
{
    const auto* exempt = r.received.route->exempt;
    if (!exempt)
        return false;
    const auto& head = r.head();
    if (std::find(exempt->methods.begin(), exempt->methods.end(), head.method) != exempt->methods.end() ||
        exempt->networks.contains(r.received.client.address))
        return true;
    if (!exempt->has_paths)
        return false;
    http::route_match match;
    exempt->paths.find({r.received.host, r.received.path, head.method_number, head.method, &head.fields}, match);
    return match.found();
}

// ---- one chain: its keys, their rules and costs

// Finds what each rule of a key takes now. Costs that depend on the request are written down in its memory.
http_error read_costs(const compiled_rules& rules, request& r, charged_chain& chain)
{
    auto& part = chain.parts[chain.count];
    auto& key = chain.keys[chain.count];
    if (!rules.fixed_costs.empty() && !r.received.route->cost) {
        part.costs = rules.fixed_costs;
        key.costs_at = charged_key::fixed_costs;
        return http_error::none;
    }
    auto& used = r.limits.costs_used;
    key.costs_at = used;
    for (const auto& terms : rules.terms) {
        const auto* cost = cost_of(terms, r);
        r.limits.is_settled_later = r.limits.is_settled_later || terms.is_settled_later(cost);
        if (const auto error = read_cost(cost, r.head(), r.memory->costs[used]); error != http_error::none)
            return error;
        r.memory->settling[used] = {.shown = r.memory->costs[used]};
        ++used;
    }
    part.costs = std::span(r.memory->costs).subspan(key.costs_at, rules.terms.size());
    return http_error::none;
}

http_error read_key(const chain_part& from, request& r, charged_chain& chain)
{
    auto& text = r.memory->keys;
    const auto text_at = text.size();
    switch (append_key(text, from.key, r)) {
    case key_state::malformed:
        return http_error::bad_key;
    case key_state::invalid:
        return http_error::bad_token;
    case key_state::refused:
        return http_error::missing_key;
    case key_state::unknown:
        return http_error::unknown_key;
    case key_state::skipped:
        text.truncate(text_at);
        return http_error::none;
    case key_state::known:
        break;
    }
    const auto key_text = text.view().substr(text_at);
    const auto& rules = choose_rules(from, key_text, r);
    if (rules.blocked_by) {
        r.limits.outcome.blocked = blocked_by_configuration(rules, key_text);
        return http_error::blocked;
    }
    if (const auto error = read_costs(rules, r, chain); error != http_error::none)
        return error;
    auto& key = chain.keys[chain.count];
    key.rules = &rules;
    key.text_at = text_at;
    key.text_size = text.size() - text_at;
    chain.parts[chain.count++].group = rules.group;
    return http_error::none;
}

// Sets the views of the keys when all keys are read: their text grows with every chain, and may move.
void point_at_keys(request& r, std::size_t chains)
{
    const auto& text = r.memory->keys;
    for (auto& chain : std::span(r.memory->chains).first(chains)) {
        for (std::size_t k = 0; k < chain.count; ++k)
            chain.parts[k].key = {text.data() + chain.keys[k].text_at, chain.keys[k].text_size};
    }
}

// Reads the next chain of the route: which keys it has, and what each of their rules takes.
http_error read_chain(request& r, limiter::time_point now)
{
    const auto number = r.limits.outcome.chains;
    auto& chain = r.memory->chains[number];
    chain.chain = r.received.route->chains[number];
    chain.count = 0;
    auto error = http_error::none;
    const bool applies = !chain.chain->guard || has_new_identity(r, chain, now);
    for (const auto& part : chain.chain->parts) {
        if (applies && error == http_error::none)
            error = read_key(part, r, chain);
    }
    if (error == http_error::none)
        r.limits.charged = r.limits.outcome.chains = number + 1;
    point_at_keys(r, r.limits.charged);
    return error;
}

// ---- what a store has said

void keep_decisions(charged_chain& chain, limiter::verdict& said, limit_outcome& outcome)
{
    chain.first_decision = outcome.count;
    for (std::size_t i = 0; i < chain.count; ++i) {
        chain.keys[i].judged = said.groups[i];
        chain.keys[i].charged_at = said.charged(i);
        const auto& rules = *chain.keys[i].rules;
        std::size_t place = 0;
        for (const auto& member : said.groups[i]->members()) {
            const auto& rule = member.limits.limits;
            if (rule.shadow && said.groups[i] == rules.group && rules.terms[place].blocks) {
                outcome.decisions[outcome.count].admitted = false;
                said.shadow_refused = true;
            }
            outcome.texts[outcome.count] = rules.find_text(rule, place++);
            outcome.rules[outcome.count++] = &rule;
        }
    }
    for (auto& group : said.kept)
        outcome.kept.push_back(std::move(group));
    outcome.delay = std::max(outcome.delay, said.delay);
    outcome.shadow_refused = outcome.shadow_refused || said.shadow_refused;
    outcome.degraded = outcome.degraded || said.shared_counters;
}

// The request is refused: the first `chains` chains get back what they took.
void note_refusal(request& r, std::size_t chains, limiter::time_point now)
{
    r.limits.outcome.refused = true;
    r.limits.outcome.delay = {};
    r.worker.counters().limited.add();
    give_back(r, chains, now);
    look_again(r, chains, now);
    r.limits.charged = 0;
}

// Keeps what the last chain has said.
void keep_verdict(request& r, limiter::verdict& said, limiter::time_point now)
{
    auto& outcome = r.limits.outcome;
    auto& chain = r.memory->chains[outcome.chains - 1];
    keep_decisions(chain, said, outcome);
    if (said.shared_counters)
        r.worker.counters().degraded.add();
    if (said.admitted)
        return;
    outcome.retry_after = said.retry_after;
    if (const auto& key = chain.keys[said.blocked_part]; said.blocked)
        outcome.blocked = blocked_by_operator(*key.rules, *key.judged, chain.parts[said.blocked_part].key);
    note_refusal(r, outcome.chains - 1, now);
}

// Redis has no answer. The request passes uncounted by this chain, or not at all, as its rules say.
http_error pass_uncounted(request& r, limiter::time_point now)
{
    auto& outcome = r.limits.outcome;
    auto& chain = r.memory->chains[outcome.chains - 1];
    chain.count = 0; // nothing that is known of was taken
    outcome.degraded = true;
    r.worker.counters().degraded.add();
    if (!chain.chain->closed_in_outage)
        return http_error::none;
    give_back(r, outcome.chains - 1, now);
    r.limits.charged = 0;
    return http_error::store_unavailable;
}

limiter::time_point judged_at(const request& r) { return r.worker.clock().to_limiter(r.received.began); }

} // namespace

http_error limit_in_memory(request& r)
{
    const auto& chains = r.received.route->chains;
    auto& outcome = r.limits.outcome;
    r.limits.waits_for_redis = false;
    if (outcome.chains == 0) {
        if (chains.empty() || is_exempt(r))
            return http_error::none;
        r.memory->keys.clear();
    }
    const auto now = judged_at(r);
    while (outcome.chains < chains.size() && !outcome.refused) {
        const auto error = read_chain(r, now);
        if (error == http_error::blocked) {
            note_refusal(r, outcome.chains, now);
            write_limit_fields(r, now);
        }
        if (error != http_error::none)
            return error;
        auto& chain = r.memory->chains[outcome.chains - 1];
        if (chain.count == 0)
            continue;
        r.limits.waits_for_redis = chain.chain->is_shared();
        if (r.limits.waits_for_redis)
            return http_error::none;
        auto said = chain.chain->store->take(chain.view(), now, outcome.decisions.subspan(outcome.count));
        keep_verdict(r, said, now);
    }
    if (!outcome.refused && chains.front()->guard)
        remember_identities(r, now);
    write_limit_fields(r, now);
    return http_error::none;
}

task<http_error> limit_in_redis(request& r)
{
    auto& outcome = r.limits.outcome;
    const auto now = judged_at(r);
    const auto began = r.worker.loop().turn_began(); // of waiting for Redis, for all chains together
    const shared_store* silent = nullptr; // it has let this request wait in vain: no later chain waits for it again
    auto error = http_error::none;
    while (r.limits.waits_for_redis && error == http_error::none) {
        auto& chain = r.memory->chains[outcome.chains - 1];
        const auto shared = r.worker.store_of(r, *chain.chain);
        auto failed = trouble::unreachable;
        limiter::verdict said;
        if (shared && shared.get() != silent) {
            r.worker.metrics().of_store(shared->name()).decisions.add();
            const auto room = outcome.decisions.subspan(outcome.count);
            failed = co_await shared->store().take(chain.view(), room, said, began);
        }
        if (failed == trouble::none) {
            chain.holder = said.holder;
            keep_verdict(r, said, now);
        } else {
            if (shared)
                shared->note_failure(failed);
            if (failed == trouble::timeout || failed == trouble::broken)
                silent = shared.get();
            error = pass_uncounted(r, now);
        }
        if (error == http_error::none)
            error = limit_in_memory(r);
    }
    co_return error;
}

} // namespace headgate
