#include "gateway/request/limit.hpp"

#include "gateway/request/identify.hpp"
#include "gateway/request/respond.hpp"
#include "gateway/request/session.hpp"
#include "gateway/stores/shared_store.hpp"

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
http_error read_costs(const compiled_rules& rules, exchange& x, asked_chain& out)
{
    auto& costs = out.parts[out.count].costs;
    auto& from = out.known[out.count].costs_at;
    if (!rules.plain_costs.empty() && !x.route->cost) {
        costs = rules.plain_costs;
        from = asked_part::plain;
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
    auto& known = out.known[out.count];
    known.from = &rules;
    known.text_at = from;
    known.text_size = x.key_text.size() - from;
    out.parts[out.count++].group = rules.group;
    return http_error::none;
}

http_error read_chain(const compiled_chain& chain, exchange& x, asked_chain& out)
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
            asked.parts[k].key = {x.key_text.data() + asked.known[k].text_at, asked.known[k].text_size};
    }
}

void keep_decisions(asked_chain& asked, limiter::verdict& said, exchange& x)
{
    auto& limit = x.limit;
    asked.first_decision = limit.count;
    for (std::size_t i = 0; i < asked.count; ++i) {
        asked.known[i].judged = said.groups[i];
        asked.known[i].charged_at = said.charged(i);
        std::size_t place = 0;
        for (const auto& member : said.groups[i]->members()) {
            limit.ready[limit.count] = asked.known[i].from->find_text(member.limits.limits, place++);
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

// Corrects what each rule of the chain was charged to what `actual(terms, charged, told)` says. In Redis that is done
// later, by whoever is told: the request does not wait for it.
template <class Actual>
void correct(session& client, const asked_chain& asked, const exchange& x, limiter::time_point now, Actual actual)
{
    std::array<std::uint64_t, limiter::max_rules_a_group> charged, corrected;
    auto decision = asked.first_decision;
    for (std::size_t k = 0; k < asked.count; decision += asked.known[k++].judged->size()) {
        const auto& terms = asked.known[k].from->terms;
        const auto& part = asked.parts[k];
        const bool same_rules = asked.known[k].judged == part.group; // else a reload came between
        for (std::size_t i = 0; i < terms.size(); ++i) {
            const bool plain = asked.known[k].costs_at == asked_part::plain;
            const auto told = plain ? std::nullopt : x.told_costs[asked.known[k].costs_at + i];
            const bool counts = !same_rules || was_charged(x.limit, decision + i);
            charged[i] = counts ? part.costs[i] : 0;
            corrected[i] = counts ? actual(terms[i], part.costs[i], told) : 0;
        }
        const auto n = terms.size();
        if (std::equal(charged.begin(), charged.begin() + static_cast<std::ptrdiff_t>(n), corrected.begin()))
            continue;
        const limiter::part as_charged{part.group, part.key, {charged.data(), n}};
        if (!asked.chain->is_shared())
            asked.chain->store->correct(as_charged, {corrected.data(), n}, asked.known[k].charged_at, now);
        else if (const auto shared = client.owner().store_of(x, *asked.chain))
            shared->correct(x.setup, as_charged, {corrected.data(), n}, asked.known[k].charged_at);
    }
}

void give_back(session& client, exchange& x, std::size_t chains, limiter::time_point now)
{
    for (const auto& asked : std::span(x.asked).first(chains))
        correct(client, asked, x, now, [](const auto&...) { return std::uint64_t{0}; });
}

// What earlier chains have told must not count what was given back to them. One in Redis is not asked again for that:
// it tells of one request too many.
void say_what_is_left(exchange& x, std::size_t chains, limiter::time_point now)
{
    constexpr std::array<std::uint64_t, limiter::max_rules_a_group> nothing{};
    std::array<limiter::decision, limiter::max_decisions> left;
    for (const auto& asked : std::span(x.asked).first(chains)) {
        if (asked.chain->is_shared())
            continue;
        auto at = asked.first_decision;
        for (std::size_t k = 0; k < asked.count; at += asked.known[k++].judged->size()) {
            const auto n = asked.known[k].judged->size();
            const limiter::part look{
                asked.parts[k].group, asked.parts[k].key, {nothing.data(), asked.known[k].from->terms.size()}};
            const auto said = asked.chain->store->look({&look, 1}, now, left);
            if (said.groups[0] != asked.known[k].judged)
                continue; // a reload came between
            for (std::size_t i = 0; i < n; ++i) {
                x.limit.decisions[at + i].remaining = left[i].remaining;
                x.limit.decisions[at + i].reset_after = left[i].reset_after;
            }
        }
    }
}

// Keeps what a chain has said; false when it refuses, and then nobody before it was charged.
bool keep_verdict(session& client, exchange& x, asked_chain& asked, limiter::verdict& said, limiter::time_point now)
{
    keep_decisions(asked, said, x);
    if (said.shared_counters)
        client.owner().counters().degraded.add();
    if (said.admitted)
        return true;
    x.limit.refused = true;
    x.limit.retry_after = said.retry_after;
    client.owner().counters().limited.add();
    x.limit.delay = {};
    if (const auto before = x.limit.chains - 1; before > 0) {
        give_back(client, x, before, now);
        say_what_is_left(x, before, now);
    }
    x.asked_count = 0;
    return false;
}

// Redis has no answer. The request passes uncounted by this chain, or not at all, as its rules say.
http_error meet_outage(session& client, exchange& x, asked_chain& asked, limiter::time_point now)
{
    asked.count = 0; // nothing that is known of was taken
    x.limit.degraded = true;
    client.owner().counters().degraded.add();
    if (!asked.chain->closed_in_outage)
        return http_error::none;
    give_back(client, x, x.limit.chains - 1, now);
    x.asked_count = 0;
    return http_error::store_unavailable;
}

} // namespace

// Asks one chain after the other until one must be waited for: then nothing is returned, and it has been read.
std::optional<http_error> limiting::now()
{
    const auto& chains = x.route->chains;
    if (x.limit.chains == 0) {
        if (chains.empty() || is_exempt(x))
            return http_error::none;
        x.key_text.clear();
    }
    const auto moment = client.owner().clock().to_limiter(x.began);
    while (x.limit.chains < chains.size()) {
        const auto i = x.limit.chains;
        auto& asked = x.asked[i];
        if (const auto error = read_chain(*chains[i], x, asked); error != http_error::none) {
            point_at_keys(x, x.asked_count); // what was taken is settled and logged by them
            return error;
        }
        x.asked_count = x.limit.chains = i + 1;
        point_at_keys(x, x.asked_count);
        if (asked.count == 0)
            continue;
        if (asked.chain->is_shared())
            return std::nullopt;
        auto said = asked.chain->store->take(asked.view(), moment, std::span(x.limit.decisions).subspan(x.limit.count));
        if (!keep_verdict(client, x, asked, said, moment))
            break;
    }
    tell_limits(x, moment);
    return http_error::none;
}

task<http_error> limiting::later() { return ask_shared(client, x); }

task<http_error> limiting::ask_shared(session& client, exchange& x)
{
    const auto moment = client.owner().clock().to_limiter(x.began);
    const auto began = client.owner().sockets().turn_began(); // of waiting for Redis, whatever chain
    const shared_store* silent = nullptr; // has let this request wait, for nothing: no later chain waits for it again
    for (;;) {
        auto& asked = x.asked[x.limit.chains - 1];
        const auto shared = client.owner().store_of(x, *asked.chain);
        auto trouble = limiter::redis::trouble::unreachable;
        limiter::verdict said;
        if (shared && shared.get() != silent) {
            client.owner().metrics().of_store(shared->name()).decisions.add();
            const auto room = std::span(x.limit.decisions).subspan(x.limit.count);
            trouble = co_await shared->store().take(asked.view(), room, said, began);
        }
        if (trouble == limiter::redis::trouble::none) {
            if (!keep_verdict(client, x, asked, said, moment)) {
                tell_limits(x, moment);
                co_return http_error::none;
            }
        } else {
            if (shared)
                shared->failed(trouble);
            if (trouble == limiter::redis::trouble::timeout || trouble == limiter::redis::trouble::broken)
                silent = shared.get();
            const auto error = meet_outage(client, x, asked, moment);
            if (error != http_error::none)
                co_return error;
        }
        const auto rest = limiting{client, x}.now();
        if (rest)
            co_return *rest;
    }
}

void renew_slots(session& client, const exchange& x)
{
    for (const auto& asked : std::span(x.asked).first(x.asked_count)) {
        const auto shared = asked.chain->is_shared() ? client.owner().store_of(x, *asked.chain) : nullptr;
        for (std::size_t k = 0; shared && k < asked.count; ++k) {
            const auto& terms = asked.known[k].from->terms;
            if (std::any_of(terms.begin(), terms.end(), [](const rule_terms& t) { return t.in_flight; }))
                shared->renew(x.setup, *asked.parts[k].group, std::string(asked.parts[k].key));
        }
    }
}

void note_answer(exchange& x)
{
    if (!x.settles)
        return;
    for (const auto& asked : std::span(x.asked).first(x.asked_count)) {
        for (std::size_t k = 0; k < asked.count; ++k) {
            const auto& terms = asked.known[k].from->terms;
            for (std::size_t i = 0; i < terms.size(); ++i) {
                if (const auto* cost = cost_of(terms[i], x); cost && !cost->settle.empty())
                    x.told_costs[asked.known[k].costs_at + i] = read_settled_cost(*cost, x.answer());
            }
        }
    }
}

void settle_request(session& client, exchange& x)
{
    if (x.settles) {
        const auto now = client.owner().clock().now();
        for (const auto& asked : std::span(x.asked).first(x.asked_count)) {
            correct(client, asked, x, now, [&](const rule_terms& terms, std::uint64_t charged, auto told) {
                return final_cost(terms, cost_of(terms, x), charged, told, x.outcome);
            });
        }
    }
    x.asked_count = 0;
}

void give_back_request(session& client, exchange& x)
{
    give_back(client, x, x.asked_count, client.owner().clock().now());
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
            for (std::size_t i = 0; i < asked.known[k].judged->size(); ++i, ++at) {
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
