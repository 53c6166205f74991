// What a request costs a rule: known when it comes, or only when it has been answered. Pure.
#pragma once

#include "config/model.hpp"
#include "gateway/http/errors.hpp"
#include "gateway/http/head.hpp"

#include <cstdint>
#include <optional>

namespace headgate {

struct request_outcome;

struct rule_terms
{
    std::optional<config::cost_config> cost; // the rule's own; none: the route's, or one
    std::optional<config::outcome_config> outcome;
    bool in_flight = false; // counts requests under way: all is given back in the end

    // Something is to be put right once the request has ended.
    bool is_settled_later(const config::cost_config* of_route) const;
};

rule_terms make_terms(const config::rule_config& rule);

// What is taken before the request is forwarded. `bad_cost`: its header says something that is no number, or twice.
http::http_error ask_cost(const config::cost_config* cost, const http::request_head& head, std::uint64_t& out);

// The answer's own words about its cost, while its head is at hand; nothing when it has none.
std::optional<std::uint64_t> read_settled_cost(const config::cost_config& cost, const http::response_head& answer);

// What the rule is charged in the end. `told` is what read_settled_cost found.
std::uint64_t final_cost(const rule_terms& terms, const config::cost_config* cost, std::uint64_t charged,
                         std::optional<std::uint64_t> told, const request_outcome& ended);

} // namespace headgate
