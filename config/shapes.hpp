// Structs that may be written in a short form, or that must be checked as a whole.
#pragma once

#include "config/types_group.hpp"

namespace headgate::config {

// A route's own answers are laid over the general ones.
template <>
struct shape<answers_config>
{
    static void prepare(loading& l, answers_config& x) { x = l.answers; }
    static bool load_short(loading&, const node&, const std::string&, answers_config&) { return false; }
    static json short_schema() { return nullptr; }
    static json short_dump(const answers_config&) { return nullptr; }
    static std::string short_words() { return {}; }
    static void verify(loading& l, const node&, const std::string& path, const answers_config& x)
    {
        if (path == "answers")
            l.answers = x;
    }
};

// cost: 5
template <>
struct shape<cost_config>
{
    static void prepare(loading&, cost_config&) {}
    static bool load_short(loading& l, const node& n, const std::string& path, cost_config& x);
    static json short_schema() { return {{"type", {"integer", "string"}}}; }
    static json short_dump(const cost_config& x);
    static std::string short_words() { return "a whole number"; }
    static void verify(loading& l, const node& n, const std::string& path, const cost_config& x);
};

// jwt_claim: sub
template <>
struct shape<jwt_claim_source>
{
    static void prepare(loading&, jwt_claim_source&) {}
    static bool load_short(loading& l, const node& n, const std::string& path, jwt_claim_source& x);
    static json short_schema() { return {{"type", "string"}}; }
    static json short_dump(const jwt_claim_source& x);
    static std::string short_words() { return "a claim's name"; }
    static void verify(loading&, const node&, const std::string&, const jwt_claim_source&) {}
};

// - client_ip
template <>
struct shape<key_source>
{
    static void prepare(loading&, key_source&) {}
    static bool load_short(loading& l, const node& n, const std::string& path, key_source& x);
    static json short_schema() { return {{"type", "string"}}; }
    static json short_dump(const key_source& x);
    static std::string short_words() { return "route, host, method, client_ip or another key's name"; }
    static void verify(loading& l, const node& n, const std::string& path, const key_source& x);
};

// user: [ { header: X-API-Key }, client_ip ]
template <>
struct shape<key_config>
{
    static void prepare(loading&, key_config&) {}
    static bool load_short(loading& l, const node& n, const std::string& path, key_config& x);
    static json short_schema();
    static json short_dump(const key_config&) { return nullptr; }
    static std::string short_words() { return "a list of sources"; }
    static void verify(loading&, const node&, const std::string&, const key_config&) {}
};

} // namespace headgate::config
