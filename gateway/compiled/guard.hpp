// The guard of a key against invented identities (`new_identities`), compiled: a chain that stands before the chains of
// a route that use the key, and takes from the client's address for identities that were not seen yet (decision 12).
#pragma once

#include "gateway/compiled/chain.hpp"
#include "gateway/stores/identity_guard.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headgate {

struct compiled_guard
{
    compiled_key key; // whose identities it guards
    std::shared_ptr<identity_guard> memory;
    std::vector<const override_table*> configured; // what names single identities of the key: those are known

    // Returns whether a client could have made this text of the key up.
    bool may_be_invented(std::string_view text) const;
};

struct guard_chain
{
    compiled_guard guard;
    compiled_chain chain; // points to the guard
};

// Compiles the guard of a key, whose memory is made if it does not exist yet.
void compile_guard(guard_chain& out, const std::string& key, const config::gateway_config& config,
                   const compiled_plans& plans, const std::map<std::string, compiled_chain>& chains, guard_map& guards,
                   limiter::time_point now);

} // namespace headgate
