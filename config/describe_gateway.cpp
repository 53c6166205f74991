// The keys of the top level, of listeners, admin, logs, forwarding and stores.
#include "config/describe.hpp"

namespace headgate::config {

void describe(visitor& v, gateway_config& x)
{
    v.key("include", x.include,
          {.doc = "More files to read, relative to this one. Maps are merged by name; lists are appended to this "
                  "file's lists.",
           .one_or_many = true,
           .what = "path",
           .example = "[ teams/search.yaml ]"});
    v.key("workers", x.workers,
          {.doc = "Worker threads, each with its own event loop; auto: one per core.",
           .min = 1,
           .max = 256,
           .zero_name = "auto",
           .example = "4"});
    v.key("drain_timeout", x.drain_timeout,
          {.doc = "After SIGTERM, how long requests in flight may take to finish.", .max = us(1h), .example = "30s"});
    v.key("trusted_proxies", x.trusted_proxies,
          {.doc = "Peers that are trusted to report the client's address.", .example = "[ 10.0.0.0/8 ]"});
    v.key("listeners", x.listeners,
          {.doc = "Where clients connect.", .required = true, .example = "[ { address: 127.0.0.1:8080 } ]"});
    v.key("admin", x.admin, {.doc = "The listener for operators: /metrics, /healthz, /readyz. Absent: none."});
    v.key("log", x.log, {.doc = "What is logged, and where."});
    v.key("forwarding", x.forwarding, {.doc = "How requests are changed before they are sent to upstreams."});
    v.key("stores", x.stores,
          {.doc = "Where counters are kept.", .check_key = check_name, .example = "local: { type: memory }"});
    v.key("jwt", x.jwt,
          {.doc = "How tokens (JWT) are verified, by the name of the provider.", .check_key = check_name});
    v.key("api_keys", x.api_keys, {.doc = "Tables of API keys.", .check_key = check_name});
    v.key("keys", x.keys,
          {.doc = "What identifies a client: the first source that is present.",
           .check_key = check_name,
           .example = "user: [ { header: X-API-Key }, client_ip ]"});
    v.key("plans", x.plans, {.doc = "The plan of a request, for limits by plan."});
    v.key("chains", x.chains,
          {.doc = "Rules that are decided together: either all admit the request, or none is charged.",
           .check_key = check_name});
    v.key(
        "upstreams", x.upstreams,
        {.doc = "Servers that requests are forwarded to.", .check_key = check_name, .example = "demo: { echo: true }"});
    v.key("answers", x.answers, {.doc = "How clients are informed of refusals and quotas."});
    v.key("routes", x.routes,
          {.doc = "Which requests go to which upstream, limited by which chains. The first match wins.",
           .required = true,
           .example = "[ { name: all, upstream: demo } ]"});
}

void describe(visitor& v, listener_config& x)
{
    v.key("address", x.address,
          {.doc = "Address and port; port 0 chooses a free port.", .required = true, .example = "127.0.0.1:8080"});
    v.key("tls", x.tls, {.doc = "Serve TLS on this address."});
    v.key("proxy_protocol", x.proxy_protocol, {.doc = "Expect the PROXY protocol (v1 or v2) from trusted_proxies."});
    v.key("max_connections", x.max_connections,
          {.doc = "Maximum number of open connections.", .min = 1, .max = 10'000'000});
    v.key("max_connections_per_address", x.max_connections_per_address,
          {.doc = "Maximum number of open connections from one client address.",
           .min = 1,
           .max = 10'000'000,
           .zero_name = "unlimited"});
    v.key("limits", x.limits, {.doc = "The largest request that is accepted."});
    v.key("timeouts", x.timeouts, {.doc = "How long the gateway waits for a client."});
}

void describe(visitor& v, tls_config& x)
{
    v.key("certificate", x.certificate,
          {.doc = "PEM file with the certificate and its chain.",
           .required = true,
           .is_path = always,
           .what = "path",
           .example = "/etc/headgate/tls.crt"});
    v.key("key", x.key,
          {.doc = "PEM file with the private key.",
           .required = true,
           .is_path = always,
           .what = "path",
           .example = "/etc/headgate/tls.key"});
    v.key(
        "client_ca", x.client_ca,
        {.doc = "PEM file with the CA certificates that sign client certificates.", .is_path = always, .what = "path"});
    v.key("client_certificate", x.client_certificates, {.doc = "Whether clients present a certificate."});
    v.key("min_version", x.min_version, {.doc = "The oldest TLS version that is accepted.", .example = "\"1.2\""});
}

void describe(visitor& v, listener_limits& x)
{
    v.key("request_line", x.request_line,
          {.doc = "Maximum size of the request line; 414 if exceeded.", .min = 256, .max = kib(64)});
    v.key("head", x.head,
          {.doc = "Maximum size of the request line and the header fields; 431 if exceeded.",
           .min = kib(1),
           .max = kib(1024)});
    v.key("fields", x.fields, {.doc = "Maximum number of header fields; 431 if exceeded.", .min = 1, .max = 10'000});
    v.key("body", x.body,
          {.doc = "Maximum size of the request body; 413 if exceeded.", .unlimited = true, .example = "10MiB"});
}

void describe(visitor& v, listener_timeouts& x)
{
    v.key("head", x.head,
          {.doc = "From the first to the last byte of the request head; 408 if exceeded.",
           .min = us(10ms),
           .max = us(1h)});
    v.key("body", x.body,
          {.doc = "Between two parts of the request body; 408 if exceeded.", .min = us(10ms), .max = us(1h)});
    v.key("body_rate", x.body_rate,
          {.doc = "Minimum bytes per second over the whole request body: reading it may take `body`, and one second "
                  "for each time this many bytes arrived; 408 if slower. Time spent waiting for the upstream does not "
                  "count. 0B: no minimum.",
           .max = kib(1024),
           .example = "256B"});
    v.key("idle", x.idle,
          {.doc = "How long a keep-alive connection may have no request.", .min = us(10ms), .max = us(24h)});
    v.key("write", x.write,
          {.doc = "How long a client may read nothing of its response.", .min = us(10ms), .max = us(1h)});
}

void describe(visitor& v, admin_config& x)
{
    v.key("address", x.address,
          {.doc = "Address and port. A token is required unless the address is a loopback address.",
           .example = "127.0.0.1:9901"});
    v.key("token", x.token,
          {.doc = "Bearer token that requests must carry, except those for /healthz and /readyz.",
           .is_secret = true,
           .example = "${HEADGATE_ADMIN_TOKEN}"});
    v.key("hosts", x.hosts,
          {.doc = "Names that Host may have, besides IP addresses and localhost; any name with a valid token.",
           .one_or_many = true,
           .check = check_host_name,
           .what = "host name",
           .example = "[ admin.internal ]"});
}

void describe(visitor& v, log_config& x)
{
    v.key("level", x.level, {.doc = "Lowest level of the gateway's own messages that is logged."});
    v.key("access", x.access, {.doc = "The access log: one line per request."});
}

void describe(visitor& v, access_log_config& x)
{
    v.key("path", x.path,
          {.doc = "A file, `-` for standard output, or `off`. SIGUSR1 reopens the file.",
           .is_path = unless_dash_or_off,
           .what = "path, `-` or `off`"});
    v.key("format", x.format, {.doc = "Format of a line."});
}

void describe(visitor& v, forwarding_config& x)
{
    v.key("via", x.via,
          {.doc = "The gateway's name in Via, or `off`. A random id of the process is appended to it: only a request "
                  "that has passed through this very process is refused as a loop (508).",
           .check = check_header_name});
    v.key("x_forwarded", x.x_forwarded_headers,
          {.doc = "X-Forwarded-For, -Proto and -Host: append to the values from a trusted proxy, replace them, or add "
                  "none. Values from other clients are always dropped."});
    v.key("forwarded", x.forwarded, {.doc = "Send the standard Forwarded field (RFC 7239) as well."});
    v.key("client_address", x.client_address,
          {.doc = "Which field of a trusted proxy contains the client's address; peer: none."});
    v.key("request_id", x.request_id, {.doc = "One id per request, for logs and upstreams."});
    v.key("merge_slashes", x.merge_slashes, {.doc = "Read // in a path as /."});
    v.key("underscores", x.underscores,
          {.doc = "What to do with header names that contain `_`, which some upstreams cannot distinguish from `-`."});
    v.key("trailers", x.trailers,
          {.doc = "Trailer fields that are forwarded; all others are dropped.",
           .check = check_header_name,
           .what = "header name",
           .example = "[ Server-Timing ]"});
}

void describe(visitor& v, request_id_config& x)
{
    v.key(
        "header", x.header,
        {.doc = "The header field with the id, or `off`.", .check = check_header_name, .what = "header name or `off`"});
    v.key("keep", x.keep, {.doc = "Keep an id that the client sends."});
}

void describe(visitor& v, store_config& x)
{
    v.key(
        "type", x.type,
        {.doc = "memory: in this process; redis: shared by several gateways.", .required = true, .example = "memory"});

    v.only_with("type", "memory", x.type == store_type::memory);
    v.key("max_keys", x.max_keys,
          {.doc = "Maximum number of counters. Only counters that have fully recovered are evicted.",
           .min = 1,
           .max = 1'000'000'000});
    v.key("snapshot", x.snapshot, {.doc = "Counters written to disk, so that used quota survives a restart."});

    v.only_with("type", "redis", x.type == store_type::redis);
    v.key("url", x.url,
          {.doc = "Address of Redis: redis://, rediss:// (TLS), unix://, redis+sentinel://host,host/master, "
                  "redis+cluster://host,host.",
           .required = true,
           .is_secret = true,
           .example = "redis://127.0.0.1:6379/0"});
    v.key("username", x.username, {.doc = "ACL user."});
    v.key("password", x.password, {.doc = "Password of the user.", .is_secret = true, .example = "${REDIS_PASSWORD}"});
    v.key("timeout", x.timeout, {.doc = "How long a decision waits for Redis.", .min = us(1ms), .max = us(10s)});
    v.key("connect_timeout", x.connect_timeout,
          {.doc = "How long establishing a connection may take.", .min = us(1ms), .max = us(60s)});
    v.key("on_outage", x.outage,
          {.doc = "While Redis does not answer: admit all, or refuse all. local (count locally with limit / "
                  "expected_gateways) is not built yet and will be the default."});
    v.key("expected_gateways", x.expected_gateways,
          {.doc = "How many gateways share this store.", .min = 1, .max = 10'000});
    v.key("tls", x.tls, {.doc = "Certificates for rediss://."});
    v.key("breaker", x.breaker, {.doc = "After how many failures Redis is no longer asked."});
    v.key("lease", x.lease,
          {.doc = "Take tokens of hot keys in advance, in blocks. Absent: every decision asks Redis."});
    v.key("hash_keys", x.hash_keys, {.doc = "Send identities to Redis only as digests."});
    v.for_all();
}

void describe(visitor& v, snapshot_config& x)
{
    v.key("path", x.path,
          {.doc = "File to write.",
           .required = true,
           .is_path = always,
           .what = "path",
           .example = "/var/lib/headgate/counters"});
    v.key("interval", x.interval,
          {.doc = "How often the file is written; it is also written when the gateway drains.",
           .min = us(1s),
           .max = us(24h)});
}

void describe(visitor& v, redis_tls_config& x)
{
    v.key("ca", x.ca,
          {.doc = "PEM file with the CA certificates that sign the server's certificate; default: the system's.",
           .is_path = always,
           .what = "path"});
    v.key("certificate", x.certificate,
          {.doc = "PEM file with the certificate of the gateway.", .is_path = always, .what = "path"});
    v.key("key", x.key, {.doc = "PEM file with its private key.", .is_path = always, .what = "path"});
    v.key("server_name", x.server_name, {.doc = "Name that the server's certificate must contain; default: the host."});
}

void describe(visitor& v, breaker_config& x)
{
    v.key("failures", x.failures,
          {.doc = "Consecutive failures after which Redis is no longer asked.", .min = 1, .max = 1'000});
    v.key("probe_interval", x.probe_interval,
          {.doc = "How often one probe checks whether Redis is back.", .min = us(10ms), .max = us(1min)});
}

void describe(visitor& v, lease_config& x)
{
    v.key("share", x.share_percent,
          {.doc = "Maximum share of a key's remaining quota that all gateways together take in advance.",
           .min = 1,
           .max = 50,
           .percent = true});
    v.key("max_age", x.max_age,
          {.doc = "Unused tokens are returned after this time.", .min = us(100ms), .max = us(1min)});
}

} // namespace headgate::config
