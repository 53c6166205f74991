#include "gateway/request/log_request.hpp"

#include "gateway/log/limit_entry.hpp"
#include "gateway/request/request.hpp"
#include "gateway/worker.hpp"

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
        .token = first_refusal(r.memory->tokens),
    };
    add_limits(entry, r, log.wants_rule());
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
