#include "gateway/request/settle.hpp"

#include "gateway/log/rare_warnings.hpp"
#include "gateway/request/request.hpp"
#include "gateway/request/respond.hpp"
#include "gateway/stores/shared_store.hpp"
#include "gateway/worker.hpp"
#include "limiter/core/settled.hpp"

#include <algorithm>

namespace headgate {

namespace {

// Whether the rule took its cost: a shadow rule that would have refused took nothing.
bool was_charged(const limit_outcome& outcome, std::size_t decision)
{
    return outcome.decisions[decision].admitted || outcome.rules[decision]->count_refused;
}

// Lets the decision of a rule tell of another cost than until now. Returns whether that changes it.
bool show_cost(limit_outcome& outcome, std::size_t decision, const charged_key& key, std::size_t rule,
               std::uint64_t& shown, std::uint64_t cost)
{
    auto& said = outcome.decisions[decision];
    if (!said.admitted || cost == shown)
        return false;
    said = limiter::settled(key.judged->members()[rule].limits, said, key.charged_at, shown, cost);
    shown = cost;
    return true;
}

// Corrects what each rule of the chain was charged to what `actual(terms, charged, settled)` says; `settled`: what the
// answer's head said.
template <class Actual>
void correct(request& r, const charged_chain& chain, limiter::time_point now, Actual actual)
{
    if (chain.chain->guard && chain.is_final)
        return;
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
            settling_cost fixed{.shown = part.costs[i]};
            auto& cost = is_fixed ? fixed : r.memory->settling[key.costs_at + i];
            const bool counts = !same_rules || was_charged(r.limits.outcome, decision + i);
            charged[i] = counts ? part.costs[i] : 0;
            corrected[i] = counts ? actual(terms[i], part.costs[i], cost.declared) : 0;
            if (counts && same_rules && !terms[i].in_flight)
                show_cost(r.limits.outcome, decision + i, key, i, cost.shown, corrected[i]);
        }
        if (std::equal(charged.begin(), charged.begin() + static_cast<std::ptrdiff_t>(n), corrected.begin()))
            continue;
        const limiter::part as_charged{part.group, part.key, {charged.data(), n}};
        if (!chain.chain->is_shared())
            chain.chain->store->correct(as_charged, {corrected.data(), n}, key.charged_at, now);
        else if (const auto shared = r.worker.store_of(r, *chain.chain))
            shared->correct(r.memory->config, as_charged, {corrected.data(), n}, key.charged_at, chain.holder);
    }
}

// What the answer's head, or an error instead of it, tells about the costs of a request.
struct answer_notes
{
    const http::response_head* head = nullptr;       // null: an error
    request_record so_far;                           // with the answer's status
    bool differs = false;                            // decisions tell of other costs now
    const config::cost_config* unreadable = nullptr; // whose header is there and cannot be read
};

// Reads what the head declares for the rules of one key, and lets their decisions tell of it and of the outcome.
void note_answer_for(request& r, const charged_chain& chain, std::size_t k, std::size_t decision, answer_notes& notes)
{
    const auto& key = chain.keys[k];
    const auto& terms = key.rules->terms;
    if (key.costs_at == charged_key::fixed_costs)
        return;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        auto& cost = r.memory->settling[key.costs_at + i];
        const auto* by = cost_of(terms[i], r);
        const auto found = by && notes.head ? read_settled_cost(*by, *notes.head) : declared_cost{};
        cost.declared = found.cost;
        if (!found.unreadable.empty())
            notes.unreadable = by;
        if (key.judged != chain.parts[k].group || !was_charged(r.limits.outcome, decision + i))
            continue;
        const auto by_head = cost_by_head(terms[i], chain.parts[k].costs[i], cost.declared, notes.so_far);
        notes.differs |= show_cost(r.limits.outcome, decision + i, key, i, cost.shown, by_head);
    }
}

// Counts an answer whose declared cost cannot be read, and logs it once per period.
void note_unreadable(request& r, const config::cost_config& by)
{
    r.worker.metrics().note_unreadable_cost(r);
    warn_rarely("route " + r.received.route->name + ": the upstream's " + by.settle + " cannot be read as a cost",
                read_settled_cost(by, r.answer()).unreadable);
}

std::span<const charged_chain> charged_chains(const request& r)
{
    return std::span(r.memory->chains).first(r.limits.charged);
}

void note_outcome(request& r, answer_notes& notes)
{
    for (const auto& chain : charged_chains(r)) {
        auto decision = chain.first_decision;
        for (std::size_t k = 0; k < chain.count; decision += chain.keys[k++].judged->size())
            note_answer_for(r, chain, k, decision, notes);
    }
    if (notes.unreadable)
        note_unreadable(r, *notes.unreadable);
    if (notes.differs)
        write_limit_fields(r, r.worker.clock().to_limiter(r.received.began));
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
    if (chains == 0)
        return; // without clearing the decisions below, which takes longer than a refusal
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
    answer_notes notes{.head = &r.answer(), .so_far = r.record};
    notes.so_far.status = r.answer().status;
    note_outcome(r, notes);
}

void note_error(request& r, http::http_error error)
{
    const bool has_decided = !r.memory->limit_fields.empty();
    if (!has_decided || !r.limits.is_settled_later)
        return;
    answer_notes notes{.so_far = r.record};
    notes.so_far.status = http::describe(error).status;
    notes.so_far.error = error;
    note_outcome(r, notes);
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

} // namespace headgate
