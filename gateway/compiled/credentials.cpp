#include "gateway/compiled/credentials.hpp"

#include <iterator>

namespace headgate {

namespace {

void add_problems(const config::gateway_config& config, const std::string& path,
                  const std::vector<std::string>& messages, std::vector<config::problem>& out)
{
    using config::severity;
    for (const auto& what : messages)
        out.push_back(config.places ? config.places->make(severity::error, path, what)
                                    : config::problem{severity::error, {}, 0, 0, path, what});
}

template <class Entries>
std::size_t number_of(const Entries& entries, const std::string& name)
{
    return static_cast<std::size_t>(std::distance(entries.begin(), entries.find(name)));
}

} // namespace

credentials load_credentials(const config::gateway_config& config, std::vector<config::problem>& problems)
{
    credentials out;
    for (const auto& [name, jwt] : config.jwt) {
        auto loaded = identity::token_verifier::load(jwt);
        add_problems(config, "jwt." + name, loaded.problems, problems);
        if (loaded.verifier)
            out.providers.push_back({jwt.header, jwt.invalid, std::move(*loaded.verifier)});
    }
    for (const auto& [name, table] : config.api_keys) {
        auto loaded = identity::api_key_table::load(table.file);
        add_problems(config, "api_keys." + name + ".file", loaded.problems, problems);
        if (loaded.table)
            out.tables.push_back(std::move(*loaded.table));
    }
    return out;
}

std::size_t provider_number(const config::gateway_config& config, const std::string& name)
{
    return name.empty() ? 0 : number_of(config.jwt, name);
}

std::size_t table_number(const config::gateway_config& config, const std::string& name)
{
    return number_of(config.api_keys, name);
}

} // namespace headgate
