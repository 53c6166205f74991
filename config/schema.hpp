// The keys of the configuration, as a JSON schema and as a list. Both are made from the description.
#pragma once

#include "config/description.hpp"

#include <string>

namespace headgate::config {

// Returns the JSON Schema (draft 2020-12) for editors, the content of config/schema.json.
std::string json_schema();

// Returns every key in the order of the description: listeners[].address, chains.NAME.rules[].limit …
key_list all_keys();

// Returns the tables of docs/configuration.md.
std::string keys_as_markdown();

} // namespace headgate::config
