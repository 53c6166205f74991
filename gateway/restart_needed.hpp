// What of a new configuration takes effect only at the next start. Pure.
#pragma once

#include "config/model.hpp"
#include "gateway/compiled/chain.hpp"
#include "gateway/stores/identity_guard.hpp"

#include <cstddef>
#include <vector>

namespace headgate {

std::size_t worker_count(const config::gateway_config& config);

// Returns a warning per key. `workers`, `stores` and `guards` are those that run.
std::vector<config::problem> restart_needed(const config::gateway_config& next, std::size_t workers,
                                            const store_map& stores, const guard_map& guards = {});

} // namespace headgate
