#include "gateway/limit.hpp"

#include "gateway/answers.hpp"
#include "gateway/identify.hpp"
#include "gateway/session.hpp"

namespace headgate {

namespace {

using http::http_error;

http_error read_keys(const ready_chain& chain, exchange& x, asked_chain& out)
{
    out.chain = &chain;
    out.count = 0;
    for (const auto& part : chain.parts) {
        const auto from = x.key_text.size();
        switch (append_key(x.key_text, part.key, x)) {
        case identity::malformed:
            return http_error::bad_key;
        case identity::refused:
            return http_error::missing_key;
        case identity::skipped:
            x.key_text.truncate(from);
            continue;
        case identity::known:
            break;
        }
        out.texts[out.count] = {from, x.key_text.size() - from};
        out.from[out.count] = &part;
        out.parts[out.count++] = {part.group.get(), {}, part.costs};
    }
    return http_error::none;
}

void keep_decisions(const asked_chain& chain, limiter::verdict& said, exchange& x)
{
    for (std::size_t i = 0; i < chain.count; ++i) {
        for (const auto& member : said.groups[i]->members())
            x.limit.rules[x.limit.count++] = &member.limits.limits;
    }
    for (auto& group : said.kept)
        x.limit.kept.push_back(std::move(group));
}

} // namespace

http_error limit_request(session& client, exchange& x)
{
    const auto& chains = x.route->chains;
    if (chains.empty())
        return http_error::none;
    x.key_text.clear();
    auto& asked = x.asked;
    for (std::size_t i = 0; i < chains.size(); ++i) {
        if (const auto error = read_keys(*chains[i], x, asked[i]); error != http_error::none)
            return error;
    }
    for (std::size_t i = 0; i < chains.size(); ++i) { // only now does the text stay where it is
        for (std::size_t k = 0; k < asked[i].count; ++k)
            asked[i].parts[k].key = x.key_text.view().substr(asked[i].texts[k].first, asked[i].texts[k].second);
    }
    const auto now = client.owner().clock().to_limiter(x.began);
    for (std::size_t i = 0; i < chains.size() && !x.limit.refused; ++i) {
        if (asked[i].count == 0)
            continue;
        auto said =
            asked[i].chain->store->take(asked[i].view(), now, std::span(x.limit.decisions).subspan(x.limit.count));
        asked[i].charged_at = said.charged_at;
        keep_decisions(asked[i], said, x);
        if (said.shared_counters)
            client.owner().counters().degraded.add();
        if (said.admitted)
            continue;
        x.limit.refused = true;
        x.limit.retry_after = said.retry_after;
        client.owner().counters().limited.add();
        for (std::size_t before = 0; before < i; ++before)
            asked[before].chain->store->give_back(asked[before].view(), asked[before].charged_at, now);
    }
    x.asked_count = x.limit.refused ? 0 : chains.size();
    append_limit_fields(x.limit_fields, x.limit, *x.route->answers);
    return http_error::none;
}

void release_request(session& client, exchange& x)
{
    for (std::size_t i = 0; i < x.asked_count; ++i) {
        auto& asked = x.asked[i];
        if (!asked.chain->holds || asked.count == 0)
            continue;
        for (std::size_t k = 0; k < asked.count; ++k)
            asked.parts[k].costs = asked.from[k]->held;
        asked.chain->store->give_back(asked.view(), asked.charged_at, client.owner().clock().now());
    }
    x.asked_count = 0;
}

} // namespace headgate
