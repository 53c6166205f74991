// A table of API keys: maps a presented key to its user. The file holds only SHA-256 digests, so it does not reveal
// keys, and a lookup by digest reveals nothing about similar keys. The table is read once and never changes.
//
//     # digest (an optional `sha256:` before it), user, plan (optional)
//     2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b alice pro
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headgate::identity {

inline constexpr std::size_t longest_api_key = 256; // bytes (K6)

class api_key_table
{
public:
    struct row
    {
        std::string user; // 1 to 256 visible ASCII bytes
        std::string plan; // empty: none given
    };
    struct loaded;

    static loaded load(const std::string& path);
    // `name` is the name of the text in problems: the path of the file.
    static loaded from_text(std::string_view text, std::string_view name);

    // Returns the row of a key. Returns nullptr when the table has no such key, or when it is empty, too long or not
    // visible ASCII (K6).
    const row* find(std::string_view presented_key) const;
    std::size_t size() const { return rows_.size(); }

    struct named_plan
    {
        std::size_t line;
        std::string plan;
    };
    // Returns the rows whose plan is none of these, in the order of their lines.
    std::vector<named_plan> plans_not_in(std::span<const std::string> plans) const;

private:
    using digest = std::array<std::uint8_t, 32>;
    // A digest is random enough to be its own hash.
    struct first_bytes
    {
        std::size_t operator()(const digest& of) const
        {
            std::size_t value = 0;
            std::memcpy(&value, of.data(), sizeof value);
            return value;
        }
    };
    struct numbered_row
    {
        row owner;
        std::size_t line; // its line, for the problem of a duplicate
    };
    class reader;

    api_key_table() = default;

    std::unordered_map<digest, numbered_row, first_bytes> rows_;
};

struct api_key_table::loaded
{
    std::optional<api_key_table> table; // set when there are no problems
    std::vector<std::string> problems;  // `file:line: what is wrong; what would be right`
    bool has_no_bytes = false;          // not even a comment: perhaps the file is just being written
};

} // namespace headgate::identity
