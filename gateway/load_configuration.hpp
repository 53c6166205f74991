// Reads a configuration file and finds every problem that can be found before the gateway starts: in the file itself,
// in the files that it names, and the use of features that are not built yet.
#pragma once

#include "config/load.hpp"
#include "gateway/compiled/credentials.hpp"

#include <map>
#include <string>

namespace headgate {

// `-` is standard input. `running` are the credentials in use, for a reload.
config::load_result load_configuration(const std::string& file, const credentials* running = nullptr);

// Returns the most memory that each memory store of a loaded configuration may take, by its name. Throws what a start
// would throw.
std::map<std::string, config::byte_size> memory_of_stores(const config::gateway_config& config);

} // namespace headgate
