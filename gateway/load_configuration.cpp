#include "gateway/load_configuration.hpp"

#include "config/not_built.hpp"
#include "gateway/credentials.hpp"

namespace headgate {

config::load_result load_configuration(const std::string& file)
{
    auto loaded = config::load_file(file);
    if (!loaded.config)
        return loaded;
    const auto missing = config::not_built_yet(*loaded.config);
    loaded.problems.insert(loaded.problems.end(), missing.begin(), missing.end());
    load_credentials(*loaded.config, loaded.problems);
    return loaded;
}

} // namespace headgate
