// A configuration file with all that can be found wrong with it before anything starts: what it says, what is not built
// yet, and what stands in the files that it names.
#pragma once

#include "config/load.hpp"

#include <string>

namespace headgate {

config::load_result load_configuration(const std::string& file);

} // namespace headgate
