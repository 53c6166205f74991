#include "gateway/request/handle_request.hpp"

#include "gateway/request/forward.hpp"
#include "gateway/request/hold.hpp"
#include "gateway/request/limit.hpp"
#include "gateway/request/log_request.hpp"
#include "gateway/request/request.hpp"
#include "gateway/request/respond.hpp"
#include "gateway/request/settle.hpp"
#include "gateway/worker.hpp"

namespace headgate {

namespace {

using http::http_error;

// Returns what is wrong with the request's head, by our own rules; nothing malformed goes further.
http_error check(request& r)
{
    if (r.client.error() != http_error::none)
        return r.client.error();
    auto& received = r.received;
    const auto& head = r.head();
    if (const auto error = http::parse_target(head.method_number, head.target, received.target);
        error != http_error::none)
        return error;
    if (r.config().source.forwarding.underscores == config::underscore_headers::refuse) {
        for (const auto& line : head.fields.lines) {
            if (line.underscore)
                return http_error::bad_header;
        }
    }
    return http::effective_host(received.target, r.client.framing().host, received.host);
}

// Finds the route by the canonical spelling of the path.
http_error find_route(request& r)
{
    auto& received = r.received;
    auto& match = r.memory->match;
    const auto& head = r.head();
    const bool is_asterisk = received.target.form == http::target_form::asterisk;
    received.path = is_asterisk ? received.target.path
                                : http::normalise_path(received.target.path,
                                                       {r.config().source.forwarding.merge_slashes}, r.memory->path);
    r.config().router.find({received.host, received.path, head.method_number, head.method, &head.fields}, match);
    if (match.found()) {
        received.route = &r.config().routes[match.route];
        return http_error::none;
    }
    received.allowed_methods = match.allowed_methods;
    return match.allowed_methods ? http_error::method_not_allowed : http_error::no_route;
}

// Finds the address that the request comes from. What else identifies it is read by the limits that ask for it.
void identify(request& r)
{
    r.received.client =
        http::find_client_address(r.client.connection().peer, r.head().fields, r.config().client_address);
}

task<> hold_and_forward(request& r)
{
    const bool has_stayed = co_await hold(r, r.limits.outcome.delay);
    if (has_stayed)
        co_await forward(r);
    else
        give_back_request(r);
}

} // namespace

task<> handle_request(worker& on, client& from)
{
    request r(on, from);
    auto error = check(r);
    if (error == http_error::none)
        error = find_route(r);
    if (error == http_error::none) {
        identify(r);
        error = limit_in_memory(r);
        if (r.limits.waits_for_redis)
            error = co_await limit_in_redis(r);
    }
    if (error != http_error::none)
        co_await respond_error(r, error);
    else if (r.limits.outcome.refused)
        co_await respond_refusal(r);
    else if (r.limits.outcome.delay > limiter::microseconds{0})
        co_await hold_and_forward(r);
    else
        co_await forward(r);
    settle_request(r);
    log_request(r);
}

} // namespace headgate
