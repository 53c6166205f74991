#include "gateway/load_configuration.hpp"

#include "config/load.hpp"
#include "gateway/compiled/config.hpp"
#include "gateway/compiled/credentials.hpp"

#include <exception>

namespace headgate {

namespace {

void complain(const config::gateway_config& config, std::vector<config::problem>& problems, const std::string& path,
              const std::string& what)
{
    if (config.places)
        problems.push_back(config.places->make(config::severity::error, path, what));
}

// Checks what only limiter/redis and the TLS code can check: certificates that cannot be read, limits that Redis cannot
// count.
void check_shared_stores(const config::gateway_config& config, std::vector<config::problem>& problems)
{
    for (const auto& name : shared_store_names(config)) {
        try {
            make_tls(config.stores.at(name));
        } catch (const std::exception& error) {
            complain(config, problems, "stores." + name + ".tls", error.what());
        }
    }
}

} // namespace

config::load_result load_configuration(const std::string& file)
{
    auto loaded = config::load_file(file);
    if (!loaded.config)
        return loaded;
    const auto missing = config::not_built_yet(*loaded.config);
    loaded.problems.insert(loaded.problems.end(), missing.begin(), missing.end());
    load_credentials(*loaded.config, loaded.problems);
    check_shared_stores(*loaded.config, loaded.problems);
    return loaded;
}

} // namespace headgate
