// A table of API keys: who a presented key belongs to. The file holds only SHA-256 digests, so reading it gives nobody
// a key, and looking up a digest tells a guesser nothing about the keys near it. Read once, never changed.
//
//     # digest (`sha256:` before it is fine), user, plan (may be left out)
//     2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b alice pro
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
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
        std::string plan; // empty: not said
    };
    struct loaded;

    static loaded load(const std::string& path);
    // `name` is what problems call the text: the file's path.
    static loaded from_text(std::string_view text, std::string_view name);

    // nullptr when nobody has this key, and when it is empty, too long or not visible ASCII (K6).
    const row* find(std::string_view presented_key) const;
    std::size_t size() const { return rows_.size(); }

private:
    using digest = std::array<std::uint8_t, 32>;
    // A digest is as good as random already.
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
        std::size_t line; // where it stands, for the problem of a second one
    };
    class reader;

    api_key_table() = default;

    std::unordered_map<digest, numbered_row, first_bytes> rows_;
};

struct api_key_table::loaded
{
    std::optional<api_key_table> table; // when there are no problems
    std::vector<std::string> problems;  // `file:line: what is wrong; what would be right`
};

} // namespace headgate::identity
