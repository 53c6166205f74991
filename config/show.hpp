// The configuration shown: as it took effect, as a JSON schema, as a list of keys. All walk the one description.
#pragma once

#include "config/model.hpp"
#include "config/type.hpp"

#include <string>

namespace headgate::config {

// The configuration as it took effect, defaults filled in, as YAML. Secrets and what came from ${VARIABLES} are ***.
std::string dump(const gateway_config& config);
// The same as JSON, for the admin API.
std::string dump_json(const gateway_config& config);

// JSON Schema (draft 2020-12) for editors; config/schema.json holds it.
std::string json_schema();

// Every key the loader knows, in the order of the description: listeners[].address, chains.NAME.rules[].limit …
key_list all_keys();

// The tables of docs/configuration.md.
std::string keys_as_markdown();

} // namespace headgate::config
