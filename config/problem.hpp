// What is wrong with a configuration and where: one line an operator can act on.
#pragma once

#include <string>
#include <vector>

namespace headgate::config {

enum class severity
{
    error,   // the gateway does not start
    warning, // it starts, but this is probably not what was meant
};

struct problem
{
    severity level = severity::error;
    std::string file;
    int line = 0;        // 1-based; 0: the file as a whole
    int column = 0;      // 1-based, in bytes
    std::string path;    // chains.api.rules[1].limit; empty: the file as a whole
    std::string message; // what is wrong; what would be right
};

// `gateway.yaml:12:7: chains.api.rules[1].limit: what is wrong; what would be right`
std::string to_string(const problem& p);

bool has_errors(const std::vector<problem>& problems);

// The candidate that `name` was probably meant to be, or nothing when none is near.
std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

// `; did you mean `x`?`, or an empty string when nothing is near.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates);

} // namespace headgate::config
