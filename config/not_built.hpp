// Features that the configuration knows and this version does not do yet. Using one is an error, never ignored.
// The list in not_built.cpp shrinks as features land.
#pragma once

#include "config/model.hpp"
#include "config/problem.hpp"

#include <vector>

namespace headgate::config {

std::vector<problem> not_built_yet(const gateway_config& config);

} // namespace headgate::config
