// Bounds in describe*.cpp, as the plain numbers that `about` holds.
#pragma once

#include <chrono>
#include <cstdint>

namespace headgate::config {

constexpr std::uint64_t us(std::chrono::microseconds d) { return static_cast<std::uint64_t>(d.count()); }
constexpr std::uint64_t kib(std::uint64_t n) { return n * 1024; }

} // namespace headgate::config
