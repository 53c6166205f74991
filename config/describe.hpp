// One description a struct: its keys in the order an operator reads them. See config/type.hpp for who reads it.
#pragma once

#include "config/model.hpp"

namespace headgate::config {

class visitor;

void describe(visitor& v, gateway_config& x);
// describe_gateway.cpp
void describe(visitor& v, tls_config& x);
void describe(visitor& v, listener_limits& x);
void describe(visitor& v, listener_timeouts& x);
void describe(visitor& v, listener_config& x);
void describe(visitor& v, admin_config& x);
void describe(visitor& v, access_log_config& x);
void describe(visitor& v, log_config& x);
void describe(visitor& v, request_id_config& x);
void describe(visitor& v, forwarding_config& x);
// describe_stores.cpp
void describe(visitor& v, snapshot_config& x);
void describe(visitor& v, redis_tls_config& x);
void describe(visitor& v, breaker_config& x);
void describe(visitor& v, lease_config& x);
void describe(visitor& v, store_config& x);
// describe_keys.cpp
void describe(visitor& v, jwt_config& x);
void describe(visitor& v, api_keys_config& x);
void describe(visitor& v, jwt_claim_source& x);
void describe(visitor& v, client_ip_source& x);
void describe(visitor& v, api_key_source& x);
void describe(visitor& v, key_source& x);
void describe(visitor& v, key_config& x);
void describe(visitor& v, plans_config& x);
// describe_limits.cpp
void describe(visitor& v, cost_config& x);
void describe(visitor& v, outcome_config& x);
void describe(visitor& v, rule_config& x);
void describe(visitor& v, chain_config& x);
// describe_routes.cpp
void describe(visitor& v, upstream_timeouts& x);
void describe(visitor& v, pool_config& x);
void describe(visitor& v, upstream_config& x);
void describe(visitor& v, route_match& x);
void describe(visitor& v, header_edit& x);
void describe(visitor& v, header_edits& x);
void describe(visitor& v, rewrite_config& x);
void describe(visitor& v, exempt_config& x);
void describe(visitor& v, answers_config& x);
void describe(visitor& v, route_config& x);

} // namespace headgate::config
