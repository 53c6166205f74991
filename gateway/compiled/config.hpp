// The configuration compiled for requests: names resolved to pointers, texts that never change written out, routes in
// their index. Made once per (re)load, immutable, shared by all workers; a request keeps the one it began with.
#pragma once

#include "config/model.hpp"
#include "gateway/compiled/answers.hpp"
#include "gateway/compiled/chain.hpp"
#include "gateway/compiled/credentials.hpp"
#include "gateway/http/client_address.hpp"
#include "gateway/http/hop_headers.hpp"
#include "gateway/http/router.hpp"
#include "limiter/io/tls_context.hpp"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace headgate {

// Which requests of a route no chain counts.
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
    std::vector<const compiled_chain*> chains;
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

// Returns what TLS to this store needs; nullptr when it has none. Throws std::runtime_error that names the file.
std::shared_ptr<const tls_context> make_tls(const config::store_config& store);

struct compiled_config
{
    config::gateway_config source; // what was compiled
    http::router router;
    std::vector<compiled_route> routes;   // the router's numbers lead here
    std::deque<compiled_answers> answers; // the general ones first, then those of routes that have their own
    std::map<std::string, compiled_chain> chains;
    compiled_plans plans;
    credentials verified_with;
    std::deque<compiled_exemption> exemptions;        // stay where they are: routes point to them
    std::vector<compiled_upstream> upstreams;         // each worker has its connections under the same number
    std::vector<compiled_shared_store> shared_stores; // and so here
    http::client_address_rules client_address;
    http::header_name request_id_header; // empty: none is sent
    std::string_view via;                // our pseudonym; empty: no Via field is added

    compiled_config() = default;
    compiled_config(const compiled_config&) = delete;
    compiled_config& operator=(const compiled_config&) = delete;
};

// Compiles the configuration: makes missing stores and defines every rule in its store.
std::shared_ptr<const compiled_config> compile_config(config::gateway_config config, store_map& stores,
                                                      limiter::time_point now);

} // namespace headgate
