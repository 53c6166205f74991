// What tokens and API keys are verified with, read from the files that the configuration names. Read anew at every
// (re)load, never changed.
#pragma once

#include "config/model.hpp"
#include "config/problem.hpp"
#include "gateway/identity/api_key_table.hpp"
#include "gateway/identity/token_verifier.hpp"

#include <string>
#include <vector>

namespace headgate {

struct token_provider
{
    std::string header; // where its tokens stand
    config::invalid_token invalid = config::invalid_token::refuse;
    identity::token_verifier verifier;
};

struct credentials
{
    std::vector<token_provider> providers;       // in the order of `jwt`
    std::vector<identity::api_key_table> tables; // in the order of `api_keys`
};

// Problems have the place of the entry that names the file. With any, what was read is not complete.
credentials load_credentials(const config::gateway_config& config, std::vector<config::problem>& problems);

// The number of an entry by its name; by no name, that of the only one.
std::size_t provider_number(const config::gateway_config& config, const std::string& name);
std::size_t table_number(const config::gateway_config& config, const std::string& name);

} // namespace headgate
