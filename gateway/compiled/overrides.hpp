// Overrides compiled for requests: which entries of a chain's rules apply to the text of a key. An entry names the
// values of one, several or all parts of the key. Pure.
#pragma once

#include "config/identity.hpp"
#include "config/model.hpp"
#include "gateway/compiled/key.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headgate {

// The parts of a key, as bits.
using part_mask = std::uint32_t;

// One identity that overrides apply to.
struct override_entry
{
    part_mask parts = 0;
    std::vector<std::string> spelled; // one per part of the key, as in the configuration; empty: any value
    std::vector<std::string> texts;   // the same, as in the text of a key

    std::string name() const; // in full
    std::string text() const; // what the text of a key has in these parts
};

// Returns the limit of one rule for the identity: of its overrides that include it, the one that names most parts; of
// several such, the one with the earlier part. Null: the rule overrides nothing there. The name of that override is
// kept in `name`.
const config::limit_value* find_override(const config::rule_config& rule, const override_entry& entry,
                                         std::string& name);

// Returns every identity that the rules, which share this key, treat differently: one per override, and one for each
// combination of overrides that name different parts. Stops after `most`.
std::vector<override_entry> override_entries(std::span<const config::rule_config* const> rules,
                                             const config::gateway_config& config, std::span<const compiled_key> key,
                                             std::size_t most);

// Which of several numbered things applies to the text of a key.
class override_table
{
public:
    void add(const override_entry& entry, std::size_t number);
    // Returns the number of the entry that names most parts; null when none applies.
    const std::size_t* find(std::string_view key) const;

private:
    struct entries
    {
        part_mask parts = 0;
        std::map<std::string, std::size_t, std::less<>> by_text;
    };
    std::vector<entries> sets_; // the one that names most parts first
};

// Returns the part of a key's text with this number.
std::string_view part_of_key(std::string_view key, std::size_t number);
// Returns what a key's text has for this value of the source with this number.
std::string text_of(const compiled_key& key, std::size_t source, std::string_view value);

} // namespace headgate
