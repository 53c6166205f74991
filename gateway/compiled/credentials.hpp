// The keys and tables that verify tokens and API keys, from the files that the configuration names. Read again at every
// (re)load, then immutable.
#pragma once

#include "config/model.hpp"
#include "config/problem.hpp"
#include "gateway/identity/api_key_table.hpp"
#include "gateway/identity/token_verifier.hpp"

#include <memory>
#include <string>
#include <vector>

namespace headgate {

struct token_provider
{
    std::string header; // the field that carries its tokens
    config::invalid_token invalid = config::invalid_token::refuse;
    identity::token_verifier verifier;
};

struct named_table
{
    std::string name;
    std::shared_ptr<const identity::api_key_table> keys;
};

struct credentials
{
    std::vector<token_provider> providers; // in the order of `jwt`
    std::vector<named_table> tables;       // in the order of `api_keys`
};

// Reads the files. Each problem has the position of the entry that names the file. The result is complete only if there
// are no errors. `running` are those in use, for a reload: a file without a single byte does not empty their tables.
credentials load_credentials(const config::gateway_config& config, std::vector<config::problem>& problems,
                             const credentials* running = nullptr);

// Returns the number of the entry with this name; for an empty name, that of the only entry.
std::size_t provider_number(const config::gateway_config& config, const std::string& name);
std::size_t table_number(const config::gateway_config& config, const std::string& name);

} // namespace headgate
