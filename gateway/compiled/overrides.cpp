#include "gateway/compiled/overrides.hpp"

#include "gateway/http/key_value.hpp"

#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <bit>
#include <set>
#include <stdexcept>

namespace headgate {

namespace {

constexpr part_mask bit(std::size_t part) { return part_mask{1} << part; }

// Whether entries of these parts take precedence.
bool precedes(part_mask a, part_mask b)
{
    if (std::popcount(a) != std::popcount(b))
        return std::popcount(a) > std::popcount(b);
    const auto differ = a ^ b;
    return (a & differ & (~differ + 1)) != 0; // the lowest bit in which they differ
}

std::string join(const std::vector<std::string>& pieces, part_mask parts)
{
    std::string out;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if ((parts & bit(i)) != 0)
            out += (out.empty() ? "" : ",") + pieces[i];
    }
    return out;
}

bool is_compatible(const override_entry& a, const override_entry& b)
{
    for (std::size_t i = 0; i < a.spelled.size(); ++i) {
        if ((a.parts & b.parts & bit(i)) != 0 && a.spelled[i] != b.spelled[i])
            return false;
    }
    return true;
}

override_entry join_entries(override_entry a, const override_entry& b)
{
    for (std::size_t i = 0; i < a.spelled.size(); ++i) {
        if ((a.parts & bit(i)) == 0) {
            a.spelled[i] = b.spelled[i];
            a.texts[i] = b.texts[i];
        }
    }
    a.parts |= b.parts;
    return a;
}

override_entry make_entry(const std::string& text, std::span<const std::vector<config::identity_source>> sources,
                          std::span<const compiled_key> key)
{
    const auto meant = config::parse_identity(text, sources);
    if (!meant)
        throw std::logic_error("an override that is ambiguous passed the check of the configuration");
    override_entry entry{.spelled = std::vector<std::string>(key.size()),
                         .texts = std::vector<std::string>(key.size())};
    for (std::size_t i = 0; i < key.size(); ++i) {
        if (!meant.parts[i])
            continue;
        entry.parts |= bit(i);
        entry.spelled[i] = meant.parts[i]->spelling();
        entry.texts[i] = text_of(key[i], static_cast<std::size_t>(meant.parts[i]->source - sources[i].data()),
                                 meant.parts[i]->value);
    }
    return entry;
}

// Adds every combination of entries that name different parts: a request may be meant by several.
void add_combinations(std::vector<override_entry>& entries, std::set<std::string>& known, std::size_t most)
{
    std::set<part_mask> masks;
    for (const auto& entry : entries)
        masks.insert(entry.parts);
    if (masks.size() == 1)
        return;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        for (std::size_t j = 0; j < i && entries.size() <= most; ++j) {
            if (entries[i].parts == entries[j].parts || !is_compatible(entries[i], entries[j]))
                continue;
            auto both = join_entries(entries[i], entries[j]);
            if (known.insert(both.name()).second)
                entries.push_back(std::move(both));
        }
    }
}

} // namespace

std::string override_entry::name() const { return join(spelled, parts); }
std::string override_entry::text() const { return join(texts, parts); }

const config::limit_value* find_override(const config::rule_config& rule, const override_entry& entry,
                                         std::string& name)
{
    const config::limit_value* found = nullptr;
    part_mask by = 0;
    for (part_mask parts = entry.parts; parts != 0; parts = (parts - 1) & entry.parts) {
        if (by != 0 && !precedes(parts, by))
            continue;
        auto spelled = join(entry.spelled, parts);
        if (const auto at = rule.overrides.find(spelled); at != rule.overrides.end()) {
            found = &at->second;
            by = parts;
            name = std::move(spelled);
        }
    }
    return found;
}

std::vector<override_entry> override_entries(std::span<const config::rule_config* const> rules,
                                             const config::gateway_config& config, std::span<const compiled_key> key,
                                             std::size_t most)
{
    std::set<std::string> known;
    for (const auto* rule : rules) {
        for (const auto& [text, _] : rule->overrides)
            known.insert(text);
    }
    if (known.empty())
        return {};
    std::vector<std::vector<config::identity_source>> sources;
    for (const auto& name : rules.front()->key)
        sources.push_back(config::sources_of(config, name));
    std::vector<override_entry> entries;
    for (const auto& text : known)
        entries.push_back(make_entry(text, sources, key));
    add_combinations(entries, known, most);
    return entries;
}

void override_table::add(const override_entry& entry, std::size_t number)
{
    const auto at = std::find_if_not(sets_.begin(), sets_.end(),
                                     [&](const entries& set) { return precedes(set.parts, entry.parts); });
    const bool is_there = at != sets_.end() && at->parts == entry.parts;
    auto& set = is_there ? *at : *sets_.insert(at, {.parts = entry.parts});
    set.by_text.emplace(entry.text(), number);
}

const std::size_t* override_table::find(std::string_view key) const
{
    for (const auto& set : sets_) {
        boost::container::small_vector<char, 1024> joined;
        auto text = key;
        if (set.parts == 1 && key.find(',') == std::string_view::npos) {
            // The whole key, as of most rules.
        } else if (std::has_single_bit(set.parts)) {
            text = part_of_key(key, static_cast<std::size_t>(std::countr_zero(set.parts)));
        } else {
            for (std::size_t i = 0; (set.parts >> i) != 0; ++i) {
                const auto piece = (set.parts & bit(i)) != 0 ? part_of_key(key, i) : std::string_view{};
                if (!joined.empty() && !piece.empty())
                    joined.push_back(',');
                joined.insert(joined.end(), piece.begin(), piece.end());
            }
            text = {joined.data(), joined.size()};
        }
        if (const auto found = set.by_text.find(text); found != set.by_text.end())
            return &found->second;
    }
    return nullptr;
}

std::string_view part_of_key(std::string_view key, std::size_t number)
{
    for (; number > 0; --number) {
        const auto comma = key.find(',');
        key.remove_prefix(comma == std::string_view::npos ? key.size() : comma + 1);
    }
    return key.substr(0, key.find(','));
}

std::string text_of(const compiled_key& key, std::size_t source, std::string_view value)
{
    http::byte_buffer escaped;
    http::append_escaped(escaped, value);
    return key.sources[source].tag + std::string(escaped.view());
}

} // namespace headgate
