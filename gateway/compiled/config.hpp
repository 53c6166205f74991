// The configuration compiled for requests: names resolved to pointers, texts that never change prepared, routes in the
// router. Made once per (re)load, immutable, shared by all workers; a request keeps the one that it began with.
#pragma once

#include "config/model.hpp"
#include "gateway/compiled/answers.hpp"
#include "gateway/compiled/chain.hpp"
#include "gateway/compiled/credentials.hpp"
#include "gateway/compiled/guard.hpp"
#include "gateway/http/client_address.hpp"
#include "gateway/http/hop_headers.hpp"
#include "gateway/http/routes/router.hpp"
#include "gateway/log/once_per.hpp"
#include "limiter/io/tls_context.hpp"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace headgate {

// The requests of a route that no chain counts.
struct compiled_exemption
{
    std::vector<std::string> methods;
    http::address_set networks;
    http::router paths;
    bool has_paths = false;
};

struct compiled_route
{
    std::string name;
    const config::route_config* config = nullptr;
    const config::upstream_config* upstream = nullptr;
    std::size_t upstream_number = 0; // in compiled_config::upstreams
    const compiled_answers* answers = nullptr;
    std::vector<const compiled_chain*> chains;  // the guards of their keys first
    const config::cost_config* cost = nullptr;  // for rules without their own; null: one
    const compiled_exemption* exempt = nullptr; // null: nothing is
    http::header_edits request_edits, response_edits;
};

struct compiled_upstream
{
    std::string name;
    const config::upstream_config* config = nullptr;
};

struct compiled_shared_store
{
    std::string name;
    const config::store_config* config = nullptr;
    std::shared_ptr<const tls_context> tls; // null: plain text
};

// Returns the TLS context for connections to this store; nullptr for plain text. Throws std::runtime_error with the
// name of the file that is wrong.
std::shared_ptr<const tls_context> make_tls(const config::store_config& store);

struct compiled_config
{
    config::gateway_config source; // what was compiled
    http::router router;
    std::vector<compiled_route> routes;   // the router's result is an index into this
    std::deque<compiled_answers> answers; // the general ones first, then those of routes that have their own
    std::map<std::string, compiled_chain> chains;
    std::map<std::string, guard_chain> guards; // by the name of the key
    compiled_plans plans;
    credentials verified_with;
    std::deque<compiled_exemption> exemptions;        // a deque, because routes point to its elements
    std::vector<compiled_upstream> upstreams;         // each worker has its connections at the same index
    std::vector<compiled_shared_store> shared_stores; // likewise
    http::client_address_rules client_address;
    http::header_name request_id_header; // empty: none is sent
    std::string via;                     // our pseudonym; empty: no Via field is added
    // Not configured, but it begins anew with each configuration: after a reload the hint comes back if it still holds.
    mutable once_per untrusted_claims{std::chrono::minutes{1}};

    compiled_config() = default;
    compiled_config(const compiled_config&) = delete;
    compiled_config& operator=(const compiled_config&) = delete;
};

// Compiles the configuration: makes missing stores and defines every rule in its store. `process_id` tells this process
// from others with the same name in Via. `running` is the configuration that it replaces; a file of API keys without a
// single byte leaves that one's keys in use. Guards that are missing in the map are made, and those that are not
// configured are removed from it; null: all are made.
std::shared_ptr<const compiled_config> compile_config(config::gateway_config config, store_map& stores,
                                                      limiter::time_point now, std::string_view process_id,
                                                      const compiled_config* running = nullptr,
                                                      guard_map* guards = nullptr);

} // namespace headgate
