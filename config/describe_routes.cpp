// The keys of upstreams, routes and answers.
#include "config/describe.hpp"

namespace headgate::config {

void describe(visitor& v, upstream_config& x)
{
    v.key("echo", x.echo,
          {.doc = "Answer in the gateway itself with the request as received: for first steps and tests."});
    v.key("servers", x.servers,
          {.doc = "Used in turn, as are the addresses of a host name. A name is looked up at the start and again when "
                  "a connection fails.",
           .min = 1,
           .host_name = true,
           .example = "[ 127.0.0.1:9000 ]"});
    v.key("host", x.host,
          {.doc = "Host that servers receive: the client's (keep), the server's own (rewrite), or this name.",
           .what = "`keep`, `rewrite` or a host"});
    v.key("timeouts", x.timeouts, {.doc = "How long the gateway waits for a server."});
    v.key("max_connections", x.max_connections,
          {.doc = "Maximum number of connections per worker to each server; all workers together may open that many "
                  "times their number.",
           .min = 1,
           .max = 1'000'000});
    v.key("max_pending", x.max_pending,
          {.doc = "Maximum number of requests per worker that wait for a connection, each for at most "
                  "timeouts.connect; 503 if either is exceeded.",
           .max = 1'000'000});
    v.key("pool", x.pool, {.doc = "Connections kept open for later requests."});
}

void describe(visitor& v, upstream_timeouts& x)
{
    v.key("connect", x.connect,
          {.doc = "Until the connection is established, 504 if exceeded; also how long to wait for a connection when "
                  "max_connections are in use, 503 if exceeded.",
           .min = us(1ms),
           .max = us(5min)});
    v.key("first_byte", x.first_byte,
          {.doc = "From the end of the request, body included, until the response begins; 504 if exceeded.",
           .min = us(1ms),
           .max = us(24h)});
    v.key("idle", x.idle,
          {.doc =
               "Between two parts of the response, once the whole request has been sent; also while the server takes "
               "nothing of a request.",
           .min = us(1ms),
           .max = us(24h)});
    v.key("tunnel", x.tunnel,
          {.doc = "A WebSocket on which neither side has sent anything for so long is closed.",
           .min = us(1ms),
           .max = us(365 * 24h),
           .unlimited = true});
}

void describe(visitor& v, pool_config& x)
{
    v.key("size", x.size, {.doc = "Maximum number of idle connections per worker.", .max = 100'000});
    v.key("idle_timeout", x.idle_timeout,
          {.doc = "How long a connection may be idle.", .min = us(10ms), .max = us(24h)});
}

void describe(visitor& v, route_config& x)
{
    v.key("name", x.name,
          {.doc = "Name in logs and metrics, and value of the built-in key `route`.",
           .required = true,
           .check = check_name,
           .what = "name",
           .example = "api"});
    v.key("match", x.match, {.doc = "Which requests; absent: all."});
    v.key("chains", x.chains,
          {.doc = "Chains that limit the requests, in order; a refusal refunds what earlier chains charged.",
           .one_or_many = true,
           .what = "name of a chain",
           .example = "[ api ]"});
    v.key("upstream", x.upstream,
          {.doc = "Entry of `upstreams`.", .required = true, .what = "name of an upstream", .example = "demo"});
    v.key("cost", x.cost, {.doc = "Cost for rules that do not set one."});
    v.key("headers", x.headers, {.doc = "Changes of header fields."});
    v.key("rewrite", x.rewrite, {.doc = "Changes of the beginning of the path."});
    v.key("forward_path", x.path, {.doc = "Send the path in its normalised form, or as the client wrote it."});
    v.key("exempt", x.exempt, {.doc = "Requests of this route that are not limited."});
    v.key("answers", x.answers, {.doc = "Settings that replace those of the top-level `answers`."});
}

void describe(visitor& v, route_match& x)
{
    v.key("host", x.hosts,
          {.doc = "Exact, or *.example.com for every name below it.",
           .one_or_many = true,
           .check = check_host_pattern,
           .what = "host",
           .example = "api.example.com"});
    v.key("path", x.paths,
          {.doc = "/x exactly; /api/* everything below /api, and /api itself; /users/{id} one segment; *.png a suffix.",
           .one_or_many = true,
           .check = check_path_pattern,
           .what = "path",
           .example = "/api/*"});
    v.key("methods", x.methods,
          {.doc = "Any of these.",
           .one_or_many = true,
           .check = check_method,
           .what = "method",
           .example = "[ GET, POST ]"});
    v.key("headers", x.headers,
          {.doc = "All of these, with exactly these values; `*`: any value.",
           .check = check_header_value,
           .check_key = check_header_name,
           .example = "{ X-Version: \"2\" }"});
}

void describe(visitor& v, header_edits& x)
{
    v.key("request", x.request, {.doc = "For requests to the upstream."});
    v.key("response", x.response, {.doc = "For responses to the client."});
}

void describe(visitor& v, header_edit& x)
{
    v.key("add", x.add,
          {.doc = "Added to existing fields of that name.",
           .check = check_header_value,
           .check_key = check_header_name,
           .example = "{ X-Gateway: headgate }"});
    v.key("set", x.set,
          {.doc = "Replaces existing fields of that name.",
           .check = check_header_value,
           .check_key = check_header_name,
           .example = "{ X-Env: prod }"});
    v.key("remove", x.remove,
          {.doc = "Removed.", .check = check_header_name, .what = "header name", .example = "[ X-Debug ]"});
}

void describe(visitor& v, rewrite_config& x)
{
    v.key("strip_prefix", x.strip_prefix,
          {.doc = "Removed from the beginning of the path.",
           .check = check_path_prefix,
           .what = "path",
           .example = "/api"});
    v.key("replace_prefix", x.replace_prefix,
          {.doc = "Put in place of strip_prefix.", .check = check_path_prefix, .what = "path", .example = "/v2"});
}

void describe(visitor& v, exempt_config& x)
{
    v.key(
        "methods", x.methods,
        {.doc = "By method.", .one_or_many = true, .check = check_method, .what = "method", .example = "[ OPTIONS ]"});
    v.key("paths", x.paths,
          {.doc = "By path.",
           .one_or_many = true,
           .check = check_path_pattern,
           .what = "path",
           .example = "[ /healthz ]"});
    v.key("networks", x.networks, {.doc = "By client address.", .one_or_many = true, .example = "[ 10.0.0.0/8 ]"});
}

void describe(visitor& v, answers_config& x)
{
    v.key("status", x.status, {.doc = "Status of a refusal.", .min = 400, .max = 599});
    v.key("dialect", x.dialect,
          {.doc = "Header fields that report quotas: RateLimit and RateLimit-Policy (ietf), the three fields of older "
                  "drafts (ietf-triple), X-RateLimit-*, Envoy's, or none."});
    v.only_with("dialect", "x-ratelimit", x.dialect == answer_dialect::x_ratelimit);
    v.key("reset", x.reset, {.doc = "Seconds from now, or since 1970."});
    v.for_all();
    v.key(
        "body", x.body,
        {.doc = "Body of a refusal, with {rule}, {limit} (60 per minute) and {wait} (seconds); default: problem+json.",
         .example = "\"slow down: {rule}\""});
    v.key("body_file", x.body_file,
          {.doc = "A file with the body, in place of `body`; at most 64 KiB, read at start and on reload.",
           .is_path = always,
           .what = "path",
           .example = "/etc/headgate/429.html"});
    v.key("content_type", x.content_type,
          {.doc = "Media type of that body. Default: by the file name (.html, .json, .txt), else text/plain.",
           .check = check_content_type,
           .what = "media type",
           .example = "text/plain"});
    v.key("headers", x.headers,
          {.doc = "Additional header fields of refusals; a Cache-Control replaces no-store.",
           .check = check_header_value,
           .check_key = check_refusal_header,
           .example = "{ Cache-Control: no-store }"});
    v.key("upstream_headers", x.upstream_headers,
          {.doc = "RateLimit fields from an upstream: sent instead of the gateway's (keep), dropped (replace), or sent "
                  "beside the gateway's (merge)."});
    v.key("explain_networks", x.explain_networks,
          {.doc = "Clients that may request the decision of every rule with the header X-RateLimit-Explain.",
           .one_or_many = true,
           .example = "[ 10.0.0.0/8 ]"});
    v.key("retry_jitter", x.retry_jitter,
          {.doc = "Maximum random addition to Retry-After, so that clients do not return all at once.",
           .max = us(1h),
           .example = "5s"});
}

} // namespace headgate::config
