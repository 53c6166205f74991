// Upstreams, routes, answers.
#include "config/checks.hpp"
#include "config/describe.hpp"
#include "config/shapes.hpp"
#include "config/units.hpp"

namespace headgate::config {

void describe(visitor& v, upstream_config& x)
{
    v.key("echo", x.echo, {.doc = "Answer in-process with what was received: for first steps and tests."});
    v.key("servers", x.servers,
          {.doc = "Taken in turn, and so are the addresses of a name. It is looked up at the start and again when a "
                  "connection fails.",
           .min = 1,
           .host_name = true,
           .example = "[ 127.0.0.1:9000 ]"});
    v.key("host", x.host,
          {.doc = "The Host that servers see: the client's (keep), the server's own (rewrite), or this name.",
           .what = "`keep`, `rewrite` or a host"});
    v.key("timeouts", x.timeouts, {.doc = "The slowest server that is waited for."});
    v.key("max_connections", x.max_connections,
          {.doc = "Connections a worker opens to each server; all workers together open that many times their number.",
           .min = 1,
           .max = 1'000'000});
    v.key("max_pending", x.max_pending,
          {.doc = "Requests a worker lets wait for a connection, each for at most timeouts.connect; 503 beyond either.",
           .max = 1'000'000});
    v.key("pool", x.pool, {.doc = "Connections kept for the next request."});
}

void describe(visitor& v, upstream_timeouts& x)
{
    v.key(
        "connect", x.connect,
        {.doc = "Until the connection stands, 504 beyond; as long again for a place below max_connections, 503 beyond.",
         .min = us(1ms),
         .max = us(5min)});
    v.key("first_byte", x.first_byte, {.doc = "Until the answer begins; 504 beyond.", .min = us(1ms), .max = us(24h)});
    v.key("idle", x.idle, {.doc = "Between two pieces of the answer.", .min = us(1ms), .max = us(24h)});
}

void describe(visitor& v, pool_config& x)
{
    v.key("size", x.size, {.doc = "Idle connections a worker keeps.", .max = 100'000});
    v.key("idle_timeout", x.idle_timeout, {.doc = "How long.", .min = us(10ms), .max = us(24h)});
}

void describe(visitor& v, route_config& x)
{
    v.key("name", x.name,
          {.doc = "In logs and metrics, and the value of the built-in key `route`.",
           .required = true,
           .check = check_name,
           .what = "name",
           .example = "api"});
    v.key("match", x.match, {.doc = "Which requests; everything when not said."});
    v.key("chains", x.chains,
          {.doc = "Limits, in order; a refusal gives back what earlier chains took.",
           .one_or_many = true,
           .what = "name of a chain",
           .example = "[ api ]"});
    v.key("upstream", x.upstream,
          {.doc = "Which entry of `upstreams`.", .required = true, .what = "name of an upstream", .example = "demo"});
    v.key("cost", x.cost, {.doc = "For rules that do not say their own."});
    v.key("headers", x.headers, {.doc = "Header fields changed on the way."});
    v.key("rewrite", x.rewrite, {.doc = "The path's beginning changed on the way."});
    v.key("forward_path", x.path, {.doc = "Send the path in its plain form, or as the client spelt it."});
    v.key("exempt", x.exempt, {.doc = "Requests of this route that no chain counts."});
    v.key("answers", x.answers, {.doc = "Laid over the general `answers`."});
}

void describe(visitor& v, route_match& x)
{
    v.key("host", x.hosts,
          {.doc = "Exact, or *.example.com for every name under it.",
           .one_or_many = true,
           .check = check_host_pattern,
           .what = "host",
           .example = "api.example.com"});
    v.key("path", x.paths,
          {.doc = "/x exactly; /api/* everything below /api and /api itself; /users/{id} one segment; *.png a suffix.",
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
          {.doc = "All of these, with exactly these values; `*`: present.",
           .check = check_header_value,
           .check_key = check_header_name,
           .example = "{ X-Version: \"2\" }"});
}

void describe(visitor& v, header_edits& x)
{
    v.key("request", x.request, {.doc = "Towards the upstream."});
    v.key("response", x.response, {.doc = "Towards the client."});
}

void describe(visitor& v, header_edit& x)
{
    v.key("add", x.add,
          {.doc = "Beside any that are there.",
           .check = check_header_value,
           .check_key = check_header_name,
           .example = "{ X-Gateway: headgate }"});
    v.key("set", x.set,
          {.doc = "In place of any that are there.",
           .check = check_header_value,
           .check_key = check_header_name,
           .example = "{ X-Env: prod }"});
    v.key("remove", x.remove,
          {.doc = "Taken away.", .check = check_header_name, .what = "header name", .example = "[ X-Debug ]"});
}

void describe(visitor& v, rewrite_config& x)
{
    v.key("strip_prefix", x.strip_prefix,
          {.doc = "Taken off the path's beginning.", .check = check_path_prefix, .what = "path", .example = "/api"});
    v.key("replace_prefix", x.replace_prefix,
          {.doc = "Put where strip_prefix stood.", .check = check_path_prefix, .what = "path", .example = "/v2"});
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
    v.key("status", x.status, {.doc = "Of a refusal.", .min = 400, .max = 599});
    v.key("dialect", x.dialect,
          {.doc = "How quotas are told: RateLimit and RateLimit-Policy (ietf), the older triple, X-RateLimit-*, "
                  "Envoy's, or not at all."});
    v.only_with("dialect", "x-ratelimit", x.dialect == answer_dialect::x_ratelimit);
    v.key("reset", x.reset, {.doc = "Seconds from now, or since 1970."});
    v.for_all();
    v.key("body", x.body,
          {.doc = "Body of a refusal, with {rule}, {limit} (60 per minute) and {wait} (seconds); problem+json when not "
                  "said.",
           .example = "\"slow down: {rule}\""});
    v.key("body_file", x.body_file,
          {.doc = "A file with the body, in place of `body`; at most 64 KiB, read at start and on reload.",
           .what = "path",
           .example = "/etc/headgate/429.html"});
    v.key("content_type", x.content_type,
          {.doc = "Of that body. When not said: by the file's name (.html, .json, .txt), else text/plain.",
           .check = check_content_type,
           .what = "media type",
           .example = "text/plain"});
    v.key("headers", x.headers,
          {.doc = "Further fields on refusals; a Cache-Control takes the place of no-store.",
           .check = check_header_value,
           .check_key = check_refusal_header,
           .example = "{ Cache-Control: no-store }"});
    v.key(
        "upstream_headers", x.upstream_headers,
        {.doc =
             "RateLimit fields that an upstream sends itself: sent in place of ours (keep), dropped (replace), or sent "
             "beside ours (merge)."});
    v.key("explain_networks", x.explain_networks,
          {.doc = "Clients that may ask what every rule said, with a header X-RateLimit-Explain.",
           .one_or_many = true,
           .example = "[ 10.0.0.0/8 ]"});
    v.key("retry_jitter", x.retry_jitter,
          {.doc = "Retry-After grows by up to this, so that clients do not return all at once.",
           .max = us(1h),
           .example = "5s"});
}

} // namespace headgate::config
