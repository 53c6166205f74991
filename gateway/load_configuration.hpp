// Reads a configuration file and finds every problem that can be found before the gateway starts: in the file itself,
// in the files that it names, and the use of features that are not built yet.
#pragma once

#include "config/load.hpp"

#include <string>

namespace headgate {

config::load_result load_configuration(const std::string& file);

} // namespace headgate
