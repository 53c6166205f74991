// The large buffers and arrays of a request: memory of the worker that requests use one after the other, so that a
// request does not allocate them. What is in it means something only to the request that wrote it.
#pragma once

#include "gateway/answers/limit_outcome.hpp"
#include "gateway/compiled/config.hpp"
#include "gateway/compiled/verified_token.hpp"
#include "gateway/http/answer_body.hpp"
#include "gateway/http/answer_head.hpp"
#include "gateway/http/routes/router.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace headgate {

// A key of a charged chain, beside what the store is asked about it.
struct charged_key
{
    const compiled_rules* rules = nullptr;
    std::size_t text_at = 0, text_size = 0;                     // of the key, in request_memory::keys
    std::size_t costs_at = 0;                                   // in request_memory::costs, or fixed_costs
    const limiter::rule_group* judged = nullptr;                // the rules that judged: newer ones during a reload
    limiter::time_point charged_at{};                           // by the clock of the store
    static constexpr std::size_t fixed_costs = ~std::size_t{0}; // the costs are the rules' own
};

// A cost that may be settled: what is known of it after it was charged.
struct settling_cost
{
    std::optional<std::uint64_t> declared; // by the answer's head
    std::uint64_t shown = 0;               // what the decision tells of
};

// One chain of the route, as its store is asked about it.
struct charged_chain
{
    const compiled_chain* chain = nullptr;
    std::size_t count = 0;                               // of keys
    std::size_t first_decision = 0;                      // in limit_outcome
    std::uint64_t holder = 0;                            // of the verdict
    std::optional<std::uint64_t> new_identity;           // of a guard: the hash of the identity to remember
    bool is_final = false;                               // of a guard: its charge is not corrected any more
    std::array<limiter::part, limiter::max_parts> parts; // their keys view request_memory::keys
    std::array<charged_key, limiter::max_parts> keys;    // one per part

    std::span<const limiter::part> view() const { return {parts.data(), count}; }
};

struct request_memory
{
    // Of this request, or of the one before: it changes with a reload only.
    std::shared_ptr<const compiled_config> config;
    std::array<char, 128> id;
    http::byte_buffer path, rewritten_path;
    http::route_match match;
    http::byte_buffer keys, key_value;  // the texts of all keys; one source of a key, decoded
    std::vector<verified_token> tokens; // by the provider's number
    judged_rules judged;
    std::array<charged_chain, config::max_chains_per_route> chains;
    std::array<std::uint64_t, limiter::max_decisions> costs;    // of keys whose rules have no fixed costs
    std::array<settling_cost, limiter::max_decisions> settling; // the same places as in `costs`
    http::byte_buffer limit_fields;                             // RateLimit lines, then the explanation if one is due
    http::byte_buffer own_body;                                 // of an answer of the gateway's own
    http::field_lines answer_fields;
    http::byte_buffer upstream_head;
    http::byte_buffer first_body, upload; // of the request, framed in chunks for the upstream
    http::response_parser answer_parser;
    http::response_framing answer_framing;
    http::answer_body answer_body;
};

} // namespace headgate
