// How much one request may be asked about. The limiter and the gateway keep room for exactly so much, so that judging
// needs no memory of its own; gateway/compiled/config.cpp holds these numbers to theirs.
#pragma once

#include <cstddef>

namespace headgate::config {

inline constexpr std::size_t max_chains_a_route = 8;
inline constexpr std::size_t max_keys_a_chain = 8;
inline constexpr std::size_t max_rules_a_key = 16; // of one chain
inline constexpr std::size_t max_rules_a_route = 128;

} // namespace headgate::config
