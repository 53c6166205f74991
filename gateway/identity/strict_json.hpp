// A JSON parser that accepts only unambiguous text. A name that occurs twice in an object may be read differently by
// another reader of the same token, so it is refused. So is deeper nesting than any token or key set needs.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace headgate::identity {

inline constexpr std::size_t deepest_json = 16; // levels of objects and arrays

struct strict_json
{
    nlohmann::json value;
    std::string complaint;  // empty on success; never repeats a value, which may be a secret
    std::size_t offset = 0; // the place of a syntax error, 0 for other errors
    explicit operator bool() const { return complaint.empty(); }
};

strict_json parse_strict_json(std::string_view text);

// Returns the member of an object with this name, or nullptr.
const nlohmann::json* find_member(const nlohmann::json& object, std::string_view name);

} // namespace headgate::identity
