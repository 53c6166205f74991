// What a request costs a rule: known before it is forwarded, or only from its answer. Pure.
#pragma once

#include "config/model.hpp"
#include "gateway/http/errors.hpp"
#include "gateway/http/head/head.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace headgate {

struct request_record;

struct rule_terms
{
    std::optional<config::cost_config> cost; // the rule's own; none: the route's, or one
    std::optional<config::outcome_config> outcome;
    bool blocks = false;    // every request; where the rule is not a shadow rule, none gets as far as its store
    bool in_flight = false; // counts requests in flight: the charge is given back when the request ends

    // Returns whether the charge is corrected once the request has ended.
    bool is_settled_later(const config::cost_config* of_route) const;
};

rule_terms make_terms(const config::rule_config& rule);

// Reads the cost that is charged before the request is forwarded. Returns `bad_cost` when its header is not a number,
// or occurs twice.
http::http_error read_cost(const config::cost_config* cost, const http::request_head& head, std::uint64_t& out);

// What the answer's head says of the request's cost.
struct declared_cost
{
    std::optional<std::uint64_t> cost; // none: it says nothing, or nothing that can be read
    std::string_view unreadable;       // not empty: the header is there, and this is the reason or its text
};
declared_cost read_settled_cost(const config::cost_config& cost, const http::response_head& answer);

// Returns what the rule is charged as far as the answer's head tells. `settled` is what read_settled_cost has read.
std::uint64_t cost_by_head(const rule_terms& terms, std::uint64_t charged, std::optional<std::uint64_t> settled,
                           const request_record& so_far);

// Returns the final charge to the rule.
std::uint64_t final_cost(const rule_terms& terms, const config::cost_config* cost, std::uint64_t charged,
                         std::optional<std::uint64_t> settled, const request_record& ended);

} // namespace headgate
