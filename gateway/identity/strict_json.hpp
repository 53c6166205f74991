// JSON that can be read in one way only. A name that stands twice in an object means one thing to us and another to
// the next reader of the same token, so it is refused, and so is nesting that no token or key set needs.
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
    std::size_t offset = 0; // where the text stopped being JSON, when that is what is wrong
    explicit operator bool() const { return complaint.empty(); }
};

strict_json parse_strict_json(std::string_view text);

// The member of an object under this name, or nullptr.
const nlohmann::json* find_member(const nlohmann::json& object, std::string_view name);

} // namespace headgate::identity
