// The top of the file, listeners, admin, logs, forwarding.
#include "config/checks.hpp"
#include "config/describe.hpp"
#include "config/shapes.hpp"
#include "config/units.hpp"

namespace headgate::config {

void describe(visitor& v, gateway_config& x)
{
    v.key("include", x.include,
          {.doc = "Further files, relative to this one. Maps join by name; lists follow this file's own entries.",
           .one_or_many = true,
           .dumped = false,
           .what = "path",
           .example = "[ teams/search.yaml ]"});
    v.key("workers", x.workers,
          {.doc = "Threads, each with its own event loop; auto is one a core.",
           .min = 1,
           .max = 256,
           .zero_word = "auto",
           .example = "4"});
    v.key("drain_timeout", x.drain_timeout,
          {.doc = "On TERM, how long requests in flight may take to finish.", .max = us(1h), .example = "30s"});
    v.key("trusted_proxies", x.trusted_proxies,
          {.doc = "Peers whose word on the client's address is taken.", .example = "[ 10.0.0.0/8 ]"});
    v.key("listeners", x.listeners,
          {.doc = "Where clients connect.", .required = true, .example = "[ { address: 127.0.0.1:8080 } ]"});
    v.key("admin", x.admin, {.doc = "The operators' listener: dashboard, /metrics, /healthz, API. Absent: none."});
    v.key("log", x.log, {.doc = "What is logged, and where."});
    v.key("forwarding", x.forwarding, {.doc = "What requests carry on their way to the upstreams."});
    v.key("stores", x.stores,
          {.doc = "Where counters live.", .check_key = check_name, .example = "local: { type: memory }"});
    v.key("jwt", x.jwt, {.doc = "Who signs tokens, and how they are checked.", .check_key = check_name});
    v.key("api_keys", x.api_keys, {.doc = "Tables of API keys.", .check_key = check_name});
    v.key("keys", x.keys,
          {.doc = "Who is asking: the first source that is present.",
           .check_key = check_name,
           .example = "user: [ { header: X-API-Key }, client_ip ]"});
    v.key("plans", x.plans, {.doc = "Which plan a request is on, for limits by plan."});
    v.key("chains", x.chains,
          {.doc = "Limits that are decided together: all admit, or nothing is charged.", .check_key = check_name});
    v.key("upstreams", x.upstreams,
          {.doc = "Where requests go.", .check_key = check_name, .example = "demo: { echo: true }"});
    v.key("answers", x.answers, {.doc = "How refusals and quotas are told to clients."});
    v.key("routes", x.routes,
          {.doc = "Which request goes where, under which chains. First match wins.",
           .required = true,
           .example = "[ { name: all, upstream: demo } ]"});
}

void describe(visitor& v, listener_config& x)
{
    v.key("address", x.address,
          {.doc = "Address and port; port 0 takes a free one.", .required = true, .example = "127.0.0.1:8080"});
    v.key("tls", x.tls, {.doc = "Serve TLS here."});
    v.key("proxy_protocol", x.proxy_protocol, {.doc = "Expect the PROXY protocol (v1 or v2) from trusted_proxies."});
    v.key("max_connections", x.max_connections, {.doc = "Connections at once.", .min = 1, .max = 10'000'000});
    v.key(
        "max_connections_per_address", x.max_connections_per_address,
        {.doc = "Connections at once from one client address.", .min = 1, .max = 10'000'000, .zero_word = "unlimited"});
    v.key("limits", x.limits, {.doc = "The largest request that is read."});
    v.key("timeouts", x.timeouts, {.doc = "The slowest client that is waited for."});
}

void describe(visitor& v, tls_config& x)
{
    v.key("certificate", x.certificate,
          {.doc = "PEM file: certificate and chain.",
           .required = true,
           .what = "path",
           .example = "/etc/headgate/tls.crt"});
    v.key("key", x.key,
          {.doc = "PEM file: private key.", .required = true, .what = "path", .example = "/etc/headgate/tls.key"});
    v.key("client_ca", x.client_ca, {.doc = "PEM file: who may sign client certificates.", .what = "path"});
    v.key("client_certificate", x.client_certificates, {.doc = "Whether clients show a certificate."});
    v.key("min_version", x.min_version, {.doc = "The oldest TLS that is spoken.", .example = "\"1.2\""});
}

void describe(visitor& v, listener_limits& x)
{
    v.key("request_line", x.request_line, {.doc = "Request line; 414 beyond.", .min = 256, .max = kib(64)});
    v.key("head", x.head, {.doc = "Request line and header fields; 431 beyond.", .min = kib(1), .max = kib(1024)});
    v.key("fields", x.fields, {.doc = "Header fields; 431 beyond.", .min = 1, .max = 10'000});
    v.key("body", x.body, {.doc = "Request body; 413 beyond.", .unlimited = true, .example = "10MiB"});
}

void describe(visitor& v, listener_timeouts& x)
{
    v.key("head", x.head,
          {.doc = "From the first to the last byte of a request's head; 408 beyond.", .min = us(10ms), .max = us(1h)});
    v.key("body", x.body,
          {.doc = "Between two pieces of a request's body; 408 beyond.", .min = us(10ms), .max = us(1h)});
    v.key("body_rate", x.body_rate,
          {.doc =
               "The least a second, of a request's body as a whole: it has `body` and a second for each of these; 408 "
               "beyond. Time that the upstream takes does not count. 0B asks for nothing.",
           .max = kib(1024),
           .example = "256B"});
    v.key("idle", x.idle, {.doc = "A kept-alive connection without a request.", .min = us(10ms), .max = us(24h)});
    v.key("write", x.write, {.doc = "A client that takes nothing of its answer.", .min = us(10ms), .max = us(1h)});
}

void describe(visitor& v, admin_config& x)
{
    v.key("address", x.address,
          {.doc = "Address and port. Off loopback a token is required.", .example = "127.0.0.1:9901"});
    v.key("token", x.token,
          {.doc = "Bearer token that every admin request must carry.",
           .is_secret = true,
           .example = "${HEADGATE_ADMIN_TOKEN}"});
}

void describe(visitor& v, log_config& x)
{
    v.key("level", x.level, {.doc = "The least that is logged of the gateway's own doings."});
    v.key("access", x.access, {.doc = "One line a request."});
}

void describe(visitor& v, access_log_config& x)
{
    v.key("path", x.path,
          {.doc = "A file, `-` for standard output, or `off`. USR1 reopens it.", .what = "path, `-` or `off`"});
    v.key("format", x.format, {.doc = "Shape of a line."});
}

void describe(visitor& v, forwarding_config& x)
{
    v.key(
        "via", x.via,
        {.doc = "Our name in Via, or `off`. A request that already carries it is a loop.", .check = check_header_name});
    v.key(
        "x_forwarded", x.x_forwarded_headers,
        {.doc = "X-Forwarded-For, -Proto and -Host: append to what a trusted proxy said, replace, or leave them off."});
    v.key("forwarded", x.forwarded, {.doc = "Send the standard Forwarded field (RFC 7239) as well."});
    v.key("client_address", x.client_address, {.doc = "What a trusted proxy tells the client's address by."});
    v.key("request_id", x.request_id, {.doc = "An id a request, in logs and towards the upstream."});
    v.key("merge_slashes", x.merge_slashes, {.doc = "Read // in a path as /."});
    v.key("underscores", x.underscores, {.doc = "Header names with `_`, which some upstreams cannot tell from `-`."});
    v.key("trailers", x.trailers,
          {.doc = "Trailer fields that may pass; all others are dropped.",
           .check = check_header_name,
           .what = "header name",
           .example = "[ Server-Timing ]"});
}

void describe(visitor& v, request_id_config& x)
{
    v.key("header", x.header,
          {.doc = "Its header, or `off`.", .check = check_header_name, .what = "header name or `off`"});
    v.key("keep", x.keep, {.doc = "Keep the id a client brings."});
}

} // namespace headgate::config
