// Reads a configuration file and finds every problem that can be found before the gateway starts: in the file itself,
// in the files that it names, and the use of features that are not built yet.
#pragma once

#include "config/load.hpp"
#include "gateway/compiled/credentials.hpp"

#include <string>

namespace headgate {

// `running` are the credentials in use, for a reload.
config::load_result load_configuration(const std::string& file, const credentials* running = nullptr);

} // namespace headgate
