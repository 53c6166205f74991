#include "gateway/request/upstream_head.hpp"

#include "gateway/http/hop_headers.hpp"
#include "gateway/request/request.hpp"
#include "gateway/upstream/upstream.hpp"
#include "gateway/worker.hpp"

#include <spdlog/spdlog.h>

namespace headgate {

namespace {

// Returns the path as the upstream is to see it. A prefix is stripped from the canonical form that was routed; what is
// left still begins with a slash.
std::string_view forwarded_path(request& r)
{
    const auto& route = *r.received.route->config;
    const auto path = route.path == config::forward_path::as_received ? r.received.target.path : r.received.path;
    const auto& strip = route.rewrite.strip_prefix;
    if (strip.empty() && route.rewrite.replace_prefix.empty())
        return path;
    if (!path.starts_with(strip))
        return path;
    auto& out = r.memory->rewritten_path;
    out.clear();
    out.append(route.rewrite.replace_prefix);
    const auto rest = path.substr(strip.size());
    const bool slash_before = out.view().ends_with('/');
    if (!rest.starts_with('/') && !slash_before)
        out.append('/');
    out.append(rest.starts_with('/') && slash_before ? rest.substr(1) : rest);
    return out.view();
}

http::forwarded_for forwarded_for(config::x_forwarded mode)
{
    switch (mode) {
    case config::x_forwarded::replace:
        return http::forwarded_for::replace;
    case config::x_forwarded::off:
        return http::forwarded_for::off;
    case config::x_forwarded::append:
        break;
    }
    return http::forwarded_for::append;
}

std::string_view upstream_host(const request& r, std::uint32_t server)
{
    const auto& choice = r.upstream.pool->config().host;
    if (choice == "keep")
        return r.received.host;
    return choice == "rewrite" ? r.upstream.pool->server_name(server) : std::string_view(choice);
}

// A proxy that is missing in trusted_proxies is the usual reason why every client seems to have one address.
void report_untrusted_claim(request& r)
{
    if (r.received.client.peer_trusted)
        return;
    const auto field = http::find_untrusted_claim(r.head().fields);
    if (!field.empty() && r.config().untrusted_claims.is_due(std::chrono::steady_clock::now()))
        spdlog::warn("{} from {} was dropped, because this address is not in trusted_proxies; if it is a proxy of "
                     "yours, add it there (logged once a minute)",
                     field, r.worker.address_texts().of(r.client.connection().peer));
}

} // namespace

void build_upstream_head(request& r, std::uint32_t server, bool websocket)
{
    const auto& rules = r.config().source.forwarding;
    const auto& framing = r.client.framing();
    const bool writes_forwarded = rules.x_forwarded_headers != config::x_forwarded::off;
    auto& out = r.memory->upstream_head;
    report_untrusted_claim(r);
    out.clear();
    http::build_upstream_head(out, r.head(),
                              {
                                  .path = forwarded_path(r),
                                  .query = r.received.target.query,
                                  .host = upstream_host(r, server),
                                  .body = framing.body,
                                  .connection = &framing.connection,
                                  .peer = r.worker.address_texts().of(r.client.connection().peer),
                                  .scheme = r.client.connection().scheme,
                                  .original_host = r.received.host,
                                  .peer_trusted = r.received.client.peer_trusted,
                                  .x_forwarded_for = forwarded_for(rules.x_forwarded_headers),
                                  .x_forwarded_proto = writes_forwarded,
                                  .x_forwarded_host = writes_forwarded,
                                  .forwarded = rules.forwarded,
                                  .via = r.config().via,
                                  .request_id_header = r.config().request_id_header,
                                  .request_id = r.received.id,
                                  .edits = &r.received.route->request_edits,
                                  .max_forwards = framing.max_forwards,
                                  .accepts_trailers = false, // trailers are dropped, so none are promised (A12)
                                  .websocket = websocket,
                                  .keep_underscore_names = rules.underscores == config::underscore_headers::keep,
                              });
}

} // namespace headgate
