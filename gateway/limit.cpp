#include "gateway/limit.hpp"

#include "gateway/answers.hpp"
#include "gateway/identify.hpp"
#include "gateway/session.hpp"

#include <algorithm>
#include <tuple>

namespace headgate {

namespace {

using http::http_error;

bool is_exempt(const exchange& x)
{
    const auto* exempt = x.route->exempt;
    if (!exempt)
        return false;
    const auto& head = x.head();
    if (std::find(exempt->methods.begin(), exempt->methods.end(), head.method) != exempt->methods.end() ||
        exempt->networks.contains(x.client.address))
        return true;
    if (!exempt->has_paths)
        return false;
    http::route_match match;
    exempt->paths.find({x.host, x.path, head.method_number, head.method, &head.fields}, match);
    return match.found();
}

// A rule that counts requests in flight counts each once, whatever the route says they cost.
const config::cost_config* cost_of(const rule_terms& terms, const exchange& x)
{
    if (terms.cost)
        return &*terms.cost;
    return terms.in_flight ? nullptr : x.route->cost;
}

// What each rule of the part takes now; where that depends on the request it is written down in the exchange.
http_error read_costs(const ready_rules& rules, exchange& x, asked_chain& out)
{
    auto& costs = out.parts[out.count].costs;
    auto& from = out.costs_at[out.count];
    if (!rules.plain_costs.empty() && !x.route->cost) {
        costs = rules.plain_costs;
        from = asked_chain::plain;
        return http_error::none;
    }
    from = x.costs_used;
    for (const auto& terms : rules.terms) {
        const auto* by = cost_of(terms, x);
        x.settles = x.settles || terms.is_settled_later(by);
        x.told_costs[x.costs_used].reset();
        if (const auto error = ask_cost(by, x.head(), x.costs[x.costs_used++]); error != http_error::none)
            return error;
    }
    costs = std::span(x.costs).subspan(from, rules.terms.size());
    return http_error::none;
}

http_error read_part(const chain_part& part, exchange& x, asked_chain& out)
{
    const auto from = x.key_text.size();
    switch (append_key(x.key_text, part.key, x)) {
    case key_state::malformed:
        return http_error::bad_key;
    case key_state::invalid:
        return http_error::bad_token;
    case key_state::refused:
        return http_error::missing_key;
    case key_state::skipped:
        x.key_text.truncate(from);
        return http_error::none;
    case key_state::known:
        break;
    }
    const auto& rules = choose_rules(part, x);
    if (rules.blocked)
        return http_error::blocked;
    if (const auto error = read_costs(rules, x, out); error != http_error::none)
        return error;
    out.parts[out.count].group = rules.group;
    out.texts[out.count] = {from, x.key_text.size() - from};
    out.from[out.count++] = &rules;
    return http_error::none;
}

http_error read_chain(const ready_chain& chain, exchange& x, asked_chain& out)
{
    out.chain = &chain;
    out.count = 0;
    for (const auto& part : chain.parts) {
        if (const auto error = read_part(part, x, out); error != http_error::none)
            return error;
    }
    return http_error::none;
}

// Keys are views of a text that grows with every chain, and may move.
void point_at_keys(exchange& x, std::size_t chains)
{
    for (auto& asked : std::span(x.asked).first(chains)) {
        for (std::size_t k = 0; k < asked.count; ++k)
            asked.parts[k].key = x.key_text.view().substr(asked.texts[k].first, asked.texts[k].second);
    }
}

void keep_decisions(asked_chain& asked, limiter::verdict& said, exchange& x)
{
    auto& limit = x.limit;
    asked.first_decision = limit.count;
    asked.charged_at = said.charged_at;
    for (std::size_t i = 0; i < asked.count; ++i) {
        asked.judged[i] = said.groups[i];
        std::size_t place = 0;
        for (const auto& member : said.groups[i]->members()) {
            limit.ready[limit.count] = asked.from[i]->find_ready(member.limits.limits, place++);
            limit.rules[limit.count++] = &member.limits.limits;
        }
    }
    for (auto& group : said.kept)
        limit.kept.push_back(std::move(group));
    limit.delay = std::max(limit.delay, said.delay);
    limit.shadow_refused = limit.shadow_refused || said.shadow_refused;
    limit.degraded = limit.degraded || said.shared_counters;
}

// Whether the rule took its cost: a shadow rule that would have refused took nothing.
bool was_charged(const limit_outcome& limit, std::size_t decision)
{
    return limit.decisions[decision].admitted || limit.rules[decision]->count_refused;
}

// Corrects what each rule of the chain was charged to what `actual(terms, charged, told)` says.
template <class Actual>
void correct(const asked_chain& asked, const exchange& x, limiter::time_point now, Actual actual)
{
    std::array<std::uint64_t, limiter::max_rules_a_group> charged, corrected;
    auto decision = asked.first_decision;
    for (std::size_t k = 0; k < asked.count; decision += asked.judged[k++]->size()) {
        const auto& terms = asked.from[k]->terms;
        const auto& part = asked.parts[k];
        const bool same_rules = asked.judged[k] == part.group; // else a reload came between
        for (std::size_t i = 0; i < terms.size(); ++i) {
            const bool plain = asked.costs_at[k] == asked_chain::plain;
            const auto told = plain ? std::nullopt : x.told_costs[asked.costs_at[k] + i];
            const bool counts = !same_rules || was_charged(x.limit, decision + i);
            charged[i] = counts ? part.costs[i] : 0;
            corrected[i] = counts ? actual(terms[i], part.costs[i], told) : 0;
        }
        const auto n = terms.size();
        if (!std::equal(charged.begin(), charged.begin() + n, corrected.begin()))
            asked.chain->store->correct({part.group, part.key, {charged.data(), n}}, {corrected.data(), n},
                                        asked.charged_at, now);
    }
}

void give_back(exchange& x, std::size_t chains, limiter::time_point now)
{
    for (const auto& asked : std::span(x.asked).first(chains))
        correct(asked, x, now, [](const auto&...) { return std::uint64_t{0}; });
}

// What earlier chains have told must not count what was given back to them.
void say_what_is_left(exchange& x, std::size_t chains, limiter::time_point now)
{
    constexpr std::array<std::uint64_t, limiter::max_rules_a_group> nothing{};
    std::array<limiter::decision, limiter::max_decisions> left;
    for (const auto& asked : std::span(x.asked).first(chains)) {
        auto at = asked.first_decision;
        for (std::size_t k = 0; k < asked.count; at += asked.judged[k++]->size()) {
            const auto n = asked.judged[k]->size();
            const limiter::part look{
                asked.parts[k].group, asked.parts[k].key, {nothing.data(), asked.from[k]->terms.size()}};
            const auto said = asked.chain->store->look({&look, 1}, now, left);
            if (said.groups[0] != asked.judged[k])
                continue; // a reload came between
            for (std::size_t i = 0; i < n; ++i) {
                x.limit.decisions[at + i].remaining = left[i].remaining;
                x.limit.decisions[at + i].reset_after = left[i].reset_after;
            }
        }
    }
}

} // namespace

http_error limit_request(session& client, exchange& x)
{
    const auto& chains = x.route->chains;
    if (chains.empty() || is_exempt(x))
        return http_error::none;
    x.key_text.clear();
    const auto now = client.owner().clock().to_limiter(x.began);
    for (std::size_t i = 0; i < chains.size(); ++i) {
        auto& asked = x.asked[i];
        if (const auto error = read_chain(*chains[i], x, asked); error != http_error::none) {
            point_at_keys(x, x.asked_count); // what was taken is settled and logged by them
            return error;
        }
        x.asked_count = x.limit.chains = i + 1;
        point_at_keys(x, x.asked_count);
        if (asked.count == 0)
            continue;
        auto said = asked.chain->store->take(asked.view(), now, std::span(x.limit.decisions).subspan(x.limit.count));
        keep_decisions(asked, said, x);
        if (said.shared_counters)
            client.owner().counters().degraded.add();
        if (said.admitted)
            continue;
        x.limit.refused = true;
        x.limit.retry_after = said.retry_after;
        client.owner().counters().limited.add();
        x.limit.delay = {};
        if (i > 0) {
            give_back(x, i, now);
            say_what_is_left(x, i, now);
        }
        x.asked_count = 0;
        break;
    }
    tell_limits(x, now);
    return http_error::none;
}

void note_answer(exchange& x)
{
    if (!x.settles)
        return;
    for (const auto& asked : std::span(x.asked).first(x.asked_count)) {
        for (std::size_t k = 0; k < asked.count; ++k) {
            const auto& terms = asked.from[k]->terms;
            for (std::size_t i = 0; i < terms.size(); ++i) {
                if (const auto* cost = cost_of(terms[i], x); cost && !cost->settle.empty())
                    x.told_costs[asked.costs_at[k] + i] = read_settled_cost(*cost, x.answer());
            }
        }
    }
}

void settle_request(session& client, exchange& x)
{
    if (x.settles) {
        const auto now = client.owner().clock().now();
        for (const auto& asked : std::span(x.asked).first(x.asked_count)) {
            correct(asked, x, now, [&](const rule_terms& terms, std::uint64_t charged, auto told) {
                return final_cost(terms, cost_of(terms, x), charged, told, x.outcome);
            });
        }
    }
    x.asked_count = 0;
}

void give_back_request(session& client, exchange& x)
{
    give_back(x, x.asked_count, client.owner().clock().now());
    x.asked_count = 0;
}

const limiter::rule* find_deciding_rule(const exchange& x, const limiter::decision*& said, std::string_view& key)
{
    const auto& limit = x.limit;
    // What stands out most decides: a refusal, then a wait, then what a shadow rule would have refused, then the least
    // that is left.
    const auto weight = [&](std::size_t i) {
        const auto& d = limit.decisions[i];
        const bool shadow = limit.rules[i]->shadow;
        const int rank = !d.admitted && !shadow ? 3 : d.delay.count() > 0 && !shadow ? 2 : !d.admitted ? 1 : 0;
        const auto wait = rank == 3 ? d.retry_after : d.delay;
        return std::tuple(rank, wait.count(), -static_cast<double>(d.remaining) / static_cast<double>(d.limit));
    };
    const limiter::rule* found = nullptr;
    std::size_t best = 0, at = 0;
    for (const auto& asked : std::span(x.asked).first(limit.chains)) {
        for (std::size_t k = 0; k < asked.count; ++k) {
            for (std::size_t i = 0; i < asked.judged[k]->size(); ++i, ++at) {
                if (found && weight(at) <= weight(best))
                    continue;
                best = at;
                found = limit.rules[at];
                said = &limit.decisions[at];
                key = asked.parts[k].key;
            }
        }
    }
    return found;
}

} // namespace headgate
