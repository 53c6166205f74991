#include "config/identity.hpp"

#include "config/ip_address.hpp"
#include "config/problem.hpp"

#include <algorithm>

namespace headgate::config {

namespace {

constexpr std::size_t max_depth_of_keys = 32; // as the check of cycles
constexpr std::size_t most_suggestions = 4;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool equal_without_case(std::string_view a, std::string_view b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

bool is_header(const identity_source& source)
{
    return source.kind == source_kind::header || source.kind == source_kind::api_key;
}

bool same_name(const identity_source& a, const identity_source& b)
{
    return a.kind == b.kind && (is_header(a) ? equal_without_case(a.name, b.name) : a.name == b.name);
}

identity_source builtin_source(std::string_view name)
{
    identity_source source;
    source.kind = name == "route"    ? source_kind::route
                  : name == "host"   ? source_kind::host
                  : name == "method" ? source_kind::method
                                     : source_kind::client_ip;
    return source;
}

identity_source make_source(const key_source& from)
{
    identity_source source;
    const auto named = [&](source_kind kind, const std::string& name, const std::string& verified_by = {}) {
        source.kind = kind;
        source.name = name;
        source.verified_by = verified_by;
        return source;
    };
    if (from.header)
        return named(source_kind::header, *from.header);
    if (from.cookie)
        return named(source_kind::cookie, *from.cookie);
    if (from.query)
        return named(source_kind::query, *from.query);
    if (from.path_param)
        return named(source_kind::path_param, *from.path_param);
    if (from.jwt_claim)
        return named(source_kind::jwt_claim, from.jwt_claim->claim, from.jwt_claim->provider);
    if (from.api_key)
        return named(source_kind::api_key, from.api_key->header, from.api_key->table);
    source.kind = source_kind::client_ip;
    if (from.client_ip) {
        source.ipv4_prefix = static_cast<unsigned>(from.client_ip->ipv4_prefix);
        source.ipv6_prefix = static_cast<unsigned>(from.client_ip->ipv6_prefix);
    }
    return source;
}

void add_sources(const gateway_config& config, const std::vector<key_source>& from, std::vector<identity_source>& to,
                 std::size_t depth)
{
    for (const auto& source : from) {
        if (source.client_certificate)
            continue; // not built yet
        if (source.name.empty()) {
            to.push_back(make_source(source));
        } else if (is_builtin_key(source.name)) {
            to.push_back(builtin_source(source.name));
        } else if (const auto key = config.keys.find(source.name);
                   key != config.keys.end() && depth < max_depth_of_keys) {
            add_sources(config, key->second.sources, to, depth + 1);
        }
    }
}

// ---- the text

int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

std::optional<std::string> percent_decode(std::string_view text)
{
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
        if (high < 0 || low < 0)
            return std::nullopt;
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return out;
}

// One part of the text. The source is named by as many of the three as are written; `rest` may be the name of a source,
// a kind or a key.
struct written_part
{
    std::string text;
    std::optional<std::string> key, kind;
    std::string rest;
    bool names_source = false; // else only a value is written
    std::string value;
};

std::optional<written_part> split(std::string_view text)
{
    written_part part{.text = std::string(text)};
    const auto equals = text.find('=');
    const auto value = percent_decode(equals == std::string_view::npos ? text : text.substr(equals + 1));
    if (!value)
        return std::nullopt;
    part.value = *value;
    if (equals == std::string_view::npos)
        return part;
    part.names_source = true;
    auto label = text.substr(0, equals);
    if (const auto slash = label.find('/'); slash != std::string_view::npos) {
        part.key = std::string(label.substr(0, slash));
        label.remove_prefix(slash + 1);
    }
    constexpr auto kinds = names_of(source_kind{});
    const auto kind = label.substr(0, label.find(':'));
    if (kind.size() < label.size() && std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) {
        part.kind = std::string(kind);
        label.remove_prefix(kind.size() + 1);
    }
    const auto rest = percent_decode(label);
    if (!rest)
        return std::nullopt;
    part.rest = *rest;
    return part;
}

std::string shown_name(const identity_source& source)
{
    return source.names_provider ? source.name + "@" + source.verified_by : source.name;
}

bool matches(const written_part& written, const identity_source& source)
{
    if (!written.names_source)
        return true;
    const auto& name = source.name;
    const auto& rest = written.rest;
    const bool is_name = !name.empty() && ((is_header(source) ? equal_without_case(rest, name) : rest == name) ||
                                           rest == shown_name(source));
    if (written.key && *written.key != source.key)
        return false;
    if (written.kind)
        return *written.kind == name_of(source.kind) && is_name;
    return is_name || rest == name_of(source.kind) || (!written.key && rest == source.key);
}

bool is_in_full(const written_part& written, const identity_source& source)
{
    const bool names_kind = source.name.empty() ? written.rest == name_of(source.kind) : written.kind.has_value();
    const bool names_provider = !source.names_provider || written.rest == shown_name(source);
    return written.key && names_kind && names_provider && matches(written, source);
}

// Returns why the source cannot have this value; else sets it to how the source reads it from a request.
std::string canonicalise(const identity_source& source, std::string& value)
{
    if (value.empty())
        return "the value is missing";
    if (source.kind == source_kind::host) {
        std::transform(value.begin(), value.end(), value.begin(), lower);
        address_text spelling;
        if (value.starts_with('[') && value.ends_with(']'))
            if (const auto address = parse_ipv6(std::string_view(value).substr(1, value.size() - 2)))
                value = "[" + std::string(format_address(*address, spelling)) + "]";
    }
    if (source.kind != source_kind::client_ip)
        return {};
    const auto address = parse_address(value);
    if (!address)
        return "it is not an address";
    const auto bits = address->is_v4() ? source.ipv4_prefix : source.ipv6_prefix;
    const auto counted = address->prefix(bits);
    address_text buffer;
    value = format_address(counted, buffer);
    return counted == *address ? "" : "addresses are counted by their first " + std::to_string(bits) + " bits";
}

// ---- the sources that a part may mean

struct candidate
{
    std::size_t part = 0; // of the key
    const identity_source* source = nullptr;
};

std::vector<candidate> all_candidates(key_sources of)
{
    std::vector<candidate> all;
    for (std::size_t part = 0; part < of.size(); ++part) {
        for (const auto& source : of[part])
            all.push_back({part, &source});
    }
    return all;
}

// Returns the candidates that the text may mean, each place in a request once.
std::vector<candidate> choose(const written_part& written, const std::vector<candidate>& from)
{
    std::vector<candidate> chosen;
    for (const auto& c : from) {
        if (is_in_full(written, *c.source))
            return {c};
        const auto is_same = [&](const candidate& other) {
            return other.part == c.part && other.source->reads_same(*c.source);
        };
        if (matches(written, *c.source) && std::none_of(chosen.begin(), chosen.end(), is_same))
            chosen.push_back(c);
    }
    return chosen;
}

std::string shortest_among(const candidate& meant, const std::string& value, const std::vector<candidate>& all)
{
    const auto& source = *meant.source;
    const auto name = percent_encode(shown_name(source));
    const std::string kind(name_of(source.kind));
    const auto kind_and_name = name.empty() ? kind : kind + ":" + name;
    for (const auto& label : {std::string(), source.key, name.empty() ? kind : name, kind_and_name}) {
        const auto text = (label.empty() ? "" : label + "=") + percent_encode(value);
        const auto back = choose(split(text).value_or(written_part{}), all);
        if (back.size() == 1 && back.front().part == meant.part && back.front().source->reads_same(source))
            return text;
    }
    return source.label() + "=" + percent_encode(value);
}

// Returns the text as the key of a YAML map.
std::string as_yaml_key(const std::string& text)
{
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-=/%@+~:";
    const bool is_plain = text.find_first_not_of(plain) == std::string::npos && text.front() != '-' &&
                          text.front() != '~' && text.front() != '=' && text.front() != '%' && text.front() != '@' &&
                          text.front() != ':' && text.back() != ':';
    if (is_plain)
        return text;
    std::string quoted = "\"";
    for (const char c : text)
        quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
    return quoted + "\"";
}

std::string as_line(const std::string& text, std::string_view setting)
{
    return setting.empty() ? "`" + text + "`" : "`" + as_yaml_key(text) + ": " + std::string(setting) + "`";
}

// Returns the shortest spellings of the value for those sources that can have it.
std::vector<std::string> spellings_of(const std::string& value, const std::vector<candidate>& among,
                                      const std::vector<candidate>& all)
{
    std::vector<std::string> forms;
    for (const auto& c : among) {
        auto own = value;
        if (canonicalise(*c.source, own).find("not an address") != std::string::npos || own.empty())
            continue;
        auto form = shortest_among(c, own, all);
        if (std::find(forms.begin(), forms.end(), form) == forms.end())
            forms.push_back(std::move(form));
    }
    return forms;
}

std::vector<std::string_view> split_at_commas(std::string_view text)
{
    std::vector<std::string_view> pieces;
    for (auto comma = text.find(','); comma != std::string_view::npos; comma = text.find(',')) {
        pieces.push_back(text.substr(0, comma));
        text.remove_prefix(comma + 1);
    }
    pieces.push_back(text);
    return pieces;
}

// One part of a text, as it was read.
struct read_part
{
    candidate found;
    identity_part part;
    std::string complaint;            // empty on success
    std::vector<std::string> instead; // what may be written for this part
};

read_part no_source(const written_part& written, const std::vector<candidate>& all)
{
    const auto label = written.text.substr(0, written.text.find('='));
    std::vector<std::string> known;
    for (const auto& c : all) {
        known.push_back(c.source->label());
        known.push_back(c.source->name.empty() ? std::string(name_of(c.source->kind)) : c.source->name);
        known.push_back(c.source->key);
    }
    read_part out{.complaint = "no source is called `" + label + "`"};
    if (const auto hint = did_you_mean(label, known); !hint.empty())
        out.complaint += hint;
    else
        out.instead = spellings_of(written.text, all, all); // perhaps the = belongs to a value
    return out;
}

read_part read_one(std::string_view text, const std::vector<candidate>& all)
{
    const auto written = split(text);
    if (!written)
        return {.complaint = "`%` begins an escape such as %2C; write `%25` for the character itself"};
    const auto possible = choose(*written, all);
    if (possible.empty())
        return no_source(*written, all);
    if (possible.size() > 1)
        return {.complaint = "`" + written->text + "` can mean more than one source",
                .instead = spellings_of(written->value, possible, all)};
    read_part out{.found = possible.front(), .part = {possible.front().source, written->value}};
    const auto wrong = canonicalise(*out.found.source, out.part.value);
    if (wrong.empty())
        return out;
    out.complaint = "`" + written->text + "` is no value of " + out.found.source->label() + ": " + wrong;
    if (wrong.starts_with("addresses"))
        out.instead = spellings_of(out.part.value, possible, all);
    return out;
}

// What the parts of a text may mean.
struct meanings
{
    std::vector<candidate> all;
    std::size_t parts = 1;
    bool of_any = false; // one source of any key
};

std::string too_many_parts(std::string_view text, std::size_t pieces, const meanings& of)
{
    const auto what = of.of_any ? std::string("this names one source")
                                : "`" + std::string(text) + "` names " + std::to_string(pieces) +
                                      " parts, and the key has " + std::to_string(of.parts);
    return what + "; a comma in a value is written %2C";
}

// Reads a text. On failure `instead` has texts that may have been meant; each may still be ambiguous in another part.
identity read_text(std::string_view text, const meanings& of, std::vector<std::string>& instead)
{
    identity out;
    out.parts.resize(of.parts);
    const auto pieces = split_at_commas(text);
    if (pieces.size() > of.parts) {
        out.complaint = too_many_parts(text, pieces.size(), of);
        std::string escaped;
        for (const auto& piece : pieces)
            escaped += (escaped.empty() ? "" : "%2C") + std::string(piece);
        if (of.parts == 1 && std::count(text.begin(), text.end(), '=') <= 1)
            instead.push_back(std::move(escaped));
        return out;
    }
    bool is_ambiguous = false; // so far; another mistake takes precedence
    for (std::size_t i = 0; i < pieces.size() && (out || is_ambiguous); ++i) {
        auto allowed = of.all;
        if (pieces.size() == of.parts) // then each part stands in its place
            std::erase_if(allowed, [&](const candidate& c) { return c.part != i; });
        auto read = read_one(pieces[i], allowed);
        if (read.complaint.empty() && out.parts[read.found.part])
            read.complaint = "`" + std::string(text) + "` gives " + read.found.source->key + " twice; remove one";
        if (read.complaint.empty()) {
            out.parts[read.found.part] = std::move(read.part);
            continue;
        }
        if (is_ambiguous && !read.instead.empty())
            continue;
        const auto at = static_cast<std::size_t>(pieces[i].data() - text.data());
        const auto before = std::string(text.substr(0, at)), after = std::string(text.substr(at + pieces[i].size()));
        out.complaint = std::move(read.complaint);
        instead.clear();
        for (const auto& form : read.instead)
            instead.push_back(before + form + after);
        is_ambiguous = !read.instead.empty();
    }
    return out;
}

// Adds the texts that mean one identity each: those of `from`, and where one is ambiguous what may be written for it.
void add_clear_texts(const std::vector<std::string>& from, const meanings& of, std::size_t& tries,
                     std::vector<std::string>& to)
{
    for (const auto& text : from) {
        if (to.size() > most_suggestions || tries == 0)
            return;
        --tries;
        std::vector<std::string> instead;
        if (!read_text(text, of, instead))
            add_clear_texts(instead, of, tries, to);
        else if (std::find(to.begin(), to.end(), text) == to.end())
            to.push_back(text);
    }
}

identity read_identity(std::string_view text, const meanings& of, std::string_view setting)
{
    std::vector<std::string> instead, clear;
    auto out = read_text(text, of, instead);
    std::size_t tries = 100;
    add_clear_texts(instead, of, tries, clear);
    for (std::size_t i = 0; i < std::min(clear.size(), most_suggestions); ++i)
        out.complaint += (i == 0 ? "; write " : " or ") + as_line(clear[i], setting);
    if (clear.size() > most_suggestions)
        out.complaint += ", or name another source";
    return out;
}

} // namespace

std::string identity_source::label() const
{
    const auto named = name.empty() ? std::string() : ":" + percent_encode(shown_name(*this));
    return key + "/" + std::string(name_of(kind)) + named;
}

bool identity_source::reads_same(const identity_source& other) const
{
    return same_name(*this, other) && verified_by == other.verified_by && ipv4_prefix == other.ipv4_prefix &&
           ipv6_prefix == other.ipv6_prefix;
}

std::vector<identity_source> sources_of(const gateway_config& config, const std::vector<key_source>& sources,
                                        const std::string& key)
{
    std::vector<identity_source> all;
    add_sources(config, sources, all, 0);
    for (auto& source : all) {
        source.key = key;
        if (source.kind == source_kind::jwt_claim && source.verified_by.empty() && config.jwt.size() == 1)
            source.verified_by = config.jwt.begin()->first;
    }
    for (auto& source : all) {
        source.names_provider = std::any_of(all.begin(), all.end(), [&](const identity_source& other) {
            return same_name(source, other) && source.verified_by != other.verified_by;
        });
    }
    return all;
}

std::vector<identity_source> sources_of(const gateway_config& config, const std::string& key)
{
    if (is_builtin_key(key)) {
        auto source = builtin_source(key);
        source.key = key;
        return {source};
    }
    const auto configured = config.keys.find(key);
    return configured == config.keys.end() ? std::vector<identity_source>{}
                                           : sources_of(config, configured->second.sources, key);
}

std::string percent_encode(std::string_view text)
{
    constexpr char digits[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > 0x20 && byte < 0x7f && c != ',' && c != '=' && c != '%' && c != '/')
            out += c;
        else
            out += {'%', digits[byte >> 4], digits[byte & 15]};
    }
    return out;
}

std::string identity::spelling() const
{
    std::string out;
    for (const auto& part : parts) {
        if (part)
            out += (out.empty() ? "" : ",") + part->spelling();
    }
    return out;
}

identity parse_identity(std::string_view text, key_sources of, std::string_view setting)
{
    return read_identity(text, {.all = all_candidates(of), .parts = of.size()}, setting);
}

identity parse_identity_of_any(std::string_view text, std::span<const identity_source> of, std::string_view setting)
{
    meanings any{.of_any = true};
    for (const auto& source : of)
        any.all.push_back({0, &source});
    return read_identity(text, any, setting);
}

std::string shortest_form(const identity_part& part, key_sources of)
{
    const auto all = all_candidates(of);
    const auto meant =
        std::find_if(all.begin(), all.end(), [&](const candidate& c) { return c.source == part.source; });
    return meant == all.end() ? part.spelling() : shortest_among(*meant, part.value, all);
}

} // namespace headgate::config
