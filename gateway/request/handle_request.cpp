#include "gateway/request/handle_request.hpp"

#include "gateway/request/forward.hpp"
#include "gateway/request/identify.hpp"
#include "gateway/request/limit.hpp"
#include "gateway/request/log_request.hpp"
#include "gateway/request/respond.hpp"
#include "gateway/request/session.hpp"

#include <algorithm>

namespace headgate {

namespace {

using http::http_error;

// A fresh id, or the client's own where the configuration keeps those that look like one.
void name_request(session& client, exchange& x)
{
    const auto& header = x.setup->request_id_header;
    if (x.setup->config.forwarding.request_id.keep && !header.empty()) {
        const auto* own = x.head().fields.find(header.text);
        const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
        if (own && !own->value.empty() && own->value.size() <= x.request_id.size() &&
            std::all_of(own->value.begin(), own->value.end(), visible)) {
            std::copy(own->value.begin(), own->value.end(), x.request_id.begin());
            x.request_id_size = own->value.size();
            return;
        }
    }
    client.owner().new_request_id(x.request_id.data());
    x.request_id_size = 32;
}

void begin(session& client, exchange& x)
{
    auto& owner = client.owner();
    x.began = owner.sockets().now();
    if (x.setup != owner.setup())
        x.setup = owner.setup();
    x.client = {client.peer()};
    name_request(client, x);
    owner.counters().requests.add();
}

// What the head says of itself, by our own rules; nothing malformed goes further.
http_error check(session& client, exchange& x)
{
    const auto& head = x.head();
    x.body_at = x.body_read = x.parser.consumed();
    if (const auto error = http::frame_request(head, client.limits().limits.body.bytes, x.framing);
        error != http_error::none)
        return error;
    const bool reads_on = x.framing.body.kind != http::body_kind::none || x.framing.connection.upgrade;
    if (reads_on && x.in.capacity() < x.body_at + read_size) {
        // The window of a body or a tunnel lies behind the head: make room for it now, before anything views the head.
        x.in.reserve(x.body_at + read_size);
        x.parser.moved_to(x.in.data());
        http::frame_request(head, client.limits().limits.body.bytes, x.framing);
    }
    x.body_left = x.framing.body.kind == http::body_kind::length ? x.framing.body.length : 0;
    x.body_done = x.framing.body.kind == http::body_kind::none ||
                  x.framing.body == http::body_framing{http::body_kind::length, 0};
    x.request_chunks.reset();
    if (const auto error = http::parse_target(head.method_number, head.target, x.target); error != http_error::none)
        return error;
    if (x.setup->config.forwarding.underscores == config::underscore_headers::refuse) {
        for (const auto& line : head.fields.lines) {
            if (line.underscore)
                return http_error::bad_header;
        }
    }
    return http::effective_host(x.target, x.framing.host, x.host);
}

http_error find_route(exchange& x)
{
    const auto& head = x.head();
    x.path = x.target.form == http::target_form::asterisk
                 ? x.target.path
                 : http::normalise_path(x.target.path, {x.setup->config.forwarding.merge_slashes}, x.path_scratch);
    x.setup->router.find({x.host, x.path, head.method_number, head.method, &head.fields}, x.match);
    if (!x.match.found())
        return x.match.allowed_methods ? http_error::method_not_allowed : http_error::no_route;
    x.route = &x.setup->routes[x.match.route];
    return http_error::none;
}

} // namespace

task<bool> handle_request(session& client, exchange& x)
{
    begin(client, x);
    auto error = check(client, x);
    if (error == http_error::none)
        error = find_route(x);
    if (error == http_error::none) {
        x.client = http::find_client_address(client.peer(), x.head().fields, x.setup->client_address);
        error = co_await limit_request(client, x);
    }
    bool again = false;
    if (error != http_error::none) {
        again = co_await answer_error(client, x, error);
    } else if (x.limit.refused) {
        auto refusal = answer_refusal(client, x);
        co_await client.in_step();
        again = co_await refusal;
    } else {
        bool stayed = true;
        if (x.limit.delay > limiter::microseconds{0})
            stayed = co_await client.hold(x.limit.delay);
        if (!stayed)
            give_back_request(client, x);
        else
            again = co_await forward(client, x);
        client.owner().buffers().give_back(x.answer_in);
    }
    co_await client.in_step();
    settle_request(client, x);
    log_request(client, x);
    co_return again;
}

task<void> answer_broken_request(session& client, exchange& x, http_error error)
{
    x.parser.moved_to(x.in.data()); // the buffer may have grown since the head was last looked at
    begin(client, x);
    co_await answer_error(client, x, error);
    co_await client.in_step();
    log_request(client, x);
}

} // namespace headgate
