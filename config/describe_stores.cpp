// Stores: memory and Redis.
#include "config/describe.hpp"
#include "config/shapes.hpp"
#include "config/units.hpp"

namespace headgate::config {

void describe(visitor& v, store_config& x)
{
    v.key("type", x.type,
          {.doc = "In this process, or shared by many gateways.", .required = true, .example = "memory"});

    v.only_with("type", "memory", x.type == store_type::memory);
    v.key("max_keys", x.max_keys,
          {.doc = "Counters kept at most; only fully recovered ones make room.", .min = 1, .max = 1'000'000'000});
    v.key("snapshot", x.snapshot, {.doc = "Counters on disk, so that a restart forgets no quota."});

    v.only_with("type", "redis", x.type == store_type::redis);
    v.key("url", x.url,
          {.doc = "Where Redis is: redis://, rediss:// (TLS), unix://, redis+sentinel://host,host/master, "
                  "redis+cluster://host,host.",
           .required = true,
           .is_secret = true,
           .example = "redis://127.0.0.1:6379/0"});
    v.key("username", x.username, {.doc = "ACL user."});
    v.key("password", x.password, {.doc = "Its password.", .is_secret = true, .example = "${REDIS_PASSWORD}"});
    v.key("timeout", x.timeout, {.doc = "The longest a decision waits for Redis.", .min = us(1ms), .max = us(10s)});
    v.key("connect_timeout", x.connect_timeout,
          {.doc = "The longest a connection takes to stand.", .min = us(1ms), .max = us(60s)});
    v.key("on_outage", x.outage,
          {.doc =
               "While Redis does not answer: count locally with limit / expected_gateways, admit all, or refuse all."});
    v.key("expected_gateways", x.expected_gateways,
          {.doc = "How many gateways share this store.", .min = 1, .max = 10'000});
    v.key("tls", x.tls, {.doc = "Certificates for rediss://."});
    v.key("breaker", x.breaker, {.doc = "When Redis is left alone."});
    v.key("lease", x.lease, {.doc = "Take tokens of hot keys ahead, in blocks. Absent: every decision asks Redis."});
    v.key("hash_keys", x.hash_keys, {.doc = "Let identities reach Redis only as digests."});
    v.for_all();
}

void describe(visitor& v, snapshot_config& x)
{
    v.key("path", x.path,
          {.doc = "The file.", .required = true, .what = "path", .example = "/var/lib/headgate/counters"});
    v.key("interval", x.interval,
          {.doc = "How often it is written; it is also written on drain.", .min = us(1s), .max = us(24h)});
}

void describe(visitor& v, redis_tls_config& x)
{
    v.key("ca", x.ca, {.doc = "PEM file: who signs the server's certificate; else the system's.", .what = "path"});
    v.key("certificate", x.certificate, {.doc = "PEM file: our own certificate.", .what = "path"});
    v.key("key", x.key, {.doc = "PEM file: its key.", .what = "path"});
    v.key("server_name", x.server_name, {.doc = "The name the certificate must show; else the host."});
}

void describe(visitor& v, breaker_config& x)
{
    v.key("failures", x.failures, {.doc = "Failures in a row before Redis is left alone.", .min = 1, .max = 1'000});
    v.key("probe_interval", x.probe_interval,
          {.doc = "How often one probe asks whether it is back.", .min = us(10ms), .max = us(1min)});
}

void describe(visitor& v, lease_config& x)
{
    v.key("share", x.share_percent,
          {.doc = "Of what is left of a key's quota, the most one gateway takes ahead.",
           .min = 1,
           .max = 50,
           .percent = true});
    v.key("max_age", x.max_age, {.doc = "Unused tokens go back after this.", .min = us(10ms), .max = us(1min)});
}

} // namespace headgate::config
