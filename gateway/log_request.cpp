#include "gateway/log_request.hpp"

#include "gateway/session.hpp"

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

std::string_view refusing_rule(const limit_outcome& limit)
{
    for (std::size_t i = 0; limit.refused && i < limit.count; ++i) {
        if (!limit.decisions[i].admitted && !limit.rules[i]->shadow)
            return limit.rules[i]->name;
    }
    return {};
}

log_entry::verdict verdict_of(const limit_outcome& limit)
{
    if (limit.refused)
        return log_entry::verdict::refused;
    return limit.count > 0 ? log_entry::verdict::passed : log_entry::verdict::none;
}

log_entry make_entry(const exchange& x, const access_log& log, microseconds took)
{
    const auto& said = x.outcome;
    log_entry entry{
        .began = log.to_wall(x.began),
        .client = x.client.address,
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
        .rule = refusing_rule(x.limit),
    };
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
    const auto ended = x.outcome.ended == steady_time{} ? std::chrono::steady_clock::now() : x.outcome.ended;
    const auto took = between(x.began, ended);
    owner.counters().finished.add();
    owner.metrics().count(x, took);
    auto& log = owner.access();
    if (log.is_on())
        log.add(make_entry(x, log, took));
}

} // namespace headgate
