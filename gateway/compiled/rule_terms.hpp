// What a request costs a rule: known when it comes, or only when it has been answered. Pure.
#pragma once

#include "config/model.hpp"
#include "gateway/http/errors.hpp"
#include "gateway/http/head.hpp"

#include <cstdint>
#include <optional>

namespace headgate {

struct request_record;

struct rule_terms
{
    std::optional<config::cost_config> cost; // the rule's own; none: the route's, or one
    std::optional<config::outcome_config> outcome;
    bool in_flight = false; // counts requests under way: all is given back in the end

    // Returns whether the charge is corrected once the request has ended.
    bool is_settled_later(const config::cost_config* of_route) const;
};

rule_terms make_terms(const config::rule_config& rule);

// Reads what is taken before the request is forwarded. `bad_cost`: its header says something that is no number, or
// says it twice.
http::http_error read_cost(const config::cost_config* cost, const http::request_head& head, std::uint64_t& out);

// Returns what the answer's head says of its cost; nothing when it does not.
std::optional<std::uint64_t> read_settled_cost(const config::cost_config& cost, const http::response_head& answer);

// Returns what the rule is charged in the end. `settled` is what read_settled_cost found.
std::uint64_t final_cost(const rule_terms& terms, const config::cost_config* cost, std::uint64_t charged,
                         std::optional<std::uint64_t> settled, const request_record& ended);

} // namespace headgate
