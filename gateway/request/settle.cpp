#include "gateway/request/settle.hpp"

#include "gateway/request/request.hpp"
#include "gateway/stores/shared_store.hpp"
#include "gateway/worker.hpp"

#include <algorithm>

namespace headgate {

namespace {

// Whether the rule took its cost: a shadow rule that would have refused took nothing.
bool was_charged(const limit_outcome& outcome, std::size_t decision)
{
    return outcome.decisions[decision].admitted || outcome.rules[decision]->count_refused;
}

// Corrects what each rule of the chain was charged to what `actual(terms, charged, settled)` says; `settled`: what the
// answer's head said.
template <class Actual>
void correct(request& r, const charged_chain& chain, limiter::time_point now, Actual actual)
{
    std::array<std::uint64_t, limiter::max_rules_per_group> charged, corrected;
    auto decision = chain.first_decision;
    for (std::size_t k = 0; k < chain.count; decision += chain.keys[k++].judged->size()) {
        const auto& key = chain.keys[k];
        const auto& part = chain.parts[k];
        const auto& terms = key.rules->terms;
        const auto n = terms.size();
        const bool same_rules = key.judged == part.group; // else a reload came between
        for (std::size_t i = 0; i < n; ++i) {
            const bool is_fixed = key.costs_at == charged_key::fixed_costs;
            const auto settled = is_fixed ? std::nullopt : r.memory->settled_costs[key.costs_at + i];
            const bool counts = !same_rules || was_charged(r.limits.outcome, decision + i);
            charged[i] = counts ? part.costs[i] : 0;
            corrected[i] = counts ? actual(terms[i], part.costs[i], settled) : 0;
        }
        if (std::equal(charged.begin(), charged.begin() + static_cast<std::ptrdiff_t>(n), corrected.begin()))
            continue;
        const limiter::part as_charged{part.group, part.key, {charged.data(), n}};
        if (!chain.chain->is_shared())
            chain.chain->store->correct(as_charged, {corrected.data(), n}, key.charged_at, now);
        else if (const auto shared = r.worker.store_of(r, *chain.chain))
            shared->correct(r.memory->config, as_charged, {corrected.data(), n}, key.charged_at);
    }
}

std::span<const charged_chain> charged_chains(const request& r)
{
    return std::span(r.memory->chains).first(r.limits.charged);
}

} // namespace

const config::cost_config* cost_of(const rule_terms& terms, const request& r)
{
    if (terms.cost)
        return &*terms.cost;
    return terms.in_flight ? nullptr : r.received.route->cost;
}

void give_back(request& r, std::size_t chains, limiter::time_point now)
{
    for (const auto& chain : std::span(r.memory->chains).first(chains))
        correct(r, chain, now, [](const auto&...) { return std::uint64_t{0}; });
}

void look_again(request& r, std::size_t chains, limiter::time_point now)
{
    constexpr std::array<std::uint64_t, limiter::max_rules_per_group> nothing{};
    std::array<limiter::decision, limiter::max_decisions> left;
    for (const auto& chain : std::span(r.memory->chains).first(chains)) {
        if (chain.chain->is_shared())
            continue;
        auto at = chain.first_decision;
        for (std::size_t k = 0; k < chain.count; at += chain.keys[k++].judged->size()) {
            const limiter::part look{
                chain.parts[k].group, chain.parts[k].key, {nothing.data(), chain.keys[k].rules->terms.size()}};
            const auto said = chain.chain->store->look({&look, 1}, now, left);
            if (said.groups[0] != chain.keys[k].judged)
                continue; // a reload came between
            for (std::size_t i = 0; i < chain.keys[k].judged->size(); ++i) {
                r.limits.outcome.decisions[at + i].remaining = left[i].remaining;
                r.limits.outcome.decisions[at + i].reset_after = left[i].reset_after;
            }
        }
    }
}

void note_answer(request& r)
{
    if (!r.limits.is_settled_later)
        return;
    for (const auto& chain : charged_chains(r)) {
        for (const auto& key : std::span(chain.keys).first(chain.count)) {
            const auto& terms = key.rules->terms;
            for (std::size_t i = 0; i < terms.size(); ++i) {
                const auto* cost = cost_of(terms[i], r);
                if (cost && !cost->settle.empty())
                    r.memory->settled_costs[key.costs_at + i] = read_settled_cost(*cost, r.answer());
            }
        }
    }
}

void settle_request(request& r)
{
    const auto& sent = r.client.transferred();
    r.record.body_out = sent.out > sent.heads_out ? sent.out - sent.heads_out : 0;
    if (!r.limits.is_settled_later)
        return;
    const auto now = r.worker.clock().now();
    for (const auto& chain : charged_chains(r)) {
        correct(r, chain, now, [&](const rule_terms& terms, std::uint64_t charged, auto settled) {
            return final_cost(terms, cost_of(terms, r), charged, settled, r.record);
        });
    }
    r.limits.charged = 0;
}

void give_back_request(request& r)
{
    give_back(r, r.limits.charged, r.worker.clock().now());
    r.limits.charged = 0;
}

void renew_slots(const request& r)
{
    for (const auto& chain : charged_chains(r)) {
        const auto shared = chain.chain->is_shared() ? r.worker.store_of(r, *chain.chain) : nullptr;
        for (std::size_t k = 0; shared && k < chain.count; ++k) {
            const auto& terms = chain.keys[k].rules->terms;
            if (std::any_of(terms.begin(), terms.end(), [](const rule_terms& t) { return t.in_flight; }))
                shared->renew(r.memory->config, *chain.parts[k].group, std::string(chain.parts[k].key));
        }
    }
}

} // namespace headgate
