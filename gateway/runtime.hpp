// The configuration made ready for requests: names resolved to pointers, texts that never change written out, routes in
// their index. Built once a (re)load, immutable, shared by all workers; a request keeps the one it began with.
#pragma once

#include "config/chain_bounds.hpp"
#include "config/model.hpp"
#include "gateway/http/client_address.hpp"
#include "gateway/http/hop_headers.hpp"
#include "gateway/http/router.hpp"
#include "limiter/memory_store.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace headgate {

// The stores outlive every reload: a limit that stays keeps its counters.
using store_map = std::map<std::string, std::unique_ptr<limiter::memory_store>>;

// One name in a rule's `key`.
struct key_reader
{
    enum class kind
    {
        configured, // keys: in the file
        route,
        host,
        method,
        client_ip
    };
    kind what = kind::configured;
    const config::key_config* key = nullptr;
};

// The rules of a chain that share a key.
struct chain_part
{
    std::vector<key_reader> key;
    std::shared_ptr<const limiter::rule_group> group;
    std::vector<std::uint64_t> costs; // one a rule
    std::vector<std::uint64_t> held;  // the same for rules that count requests in flight, 0 for the others
};

struct ready_chain
{
    std::string name;
    limiter::memory_store* store = nullptr;
    std::vector<chain_part> parts;
    bool holds = false; // some rule counts requests in flight: they must be released
};

struct ready_route
{
    std::string name;
    const config::route_config* config = nullptr;
    const config::upstream_config* upstream = nullptr;
    std::size_t upstream_number = 0; // in the runtime's upstreams
    const config::answers_config* answers = nullptr;
    std::vector<const ready_chain*> chains;
    http::header_edits request_edits, response_edits;
};

struct ready_upstream
{
    std::string name;
    const config::upstream_config* config = nullptr;
};

struct runtime
{
    config::gateway_config config;
    http::router router;
    std::vector<ready_route> routes; // the router's numbers lead here
    std::map<std::string, ready_chain> chains;
    std::vector<ready_upstream> upstreams; // each worker has its connections under the same number
    http::client_address_rules client_address;

    runtime() = default;
    runtime(const runtime&) = delete;
    runtime& operator=(const runtime&) = delete;
};

// Makes missing stores and defines every rule in its store.
std::shared_ptr<const runtime> make_runtime(config::gateway_config config, store_map& stores, limiter::time_point now);

} // namespace headgate
