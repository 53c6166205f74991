#include "config/description.hpp"

#include <algorithm>
#include <set>

namespace headgate::config {

void load_context::error(const node& n, const std::string& path, std::string message)
{
    failed_.insert(path);
    // Bounds the number of messages for a file with very many errors.
    constexpr std::size_t most_problems = 20'000;
    if (problems_.size() >= most_problems)
        return;
    place at{n.file, n.line, n.column};
    // An empty value has no position of its own; use that of its key.
    if (n.is(node_kind::null) && at_.given(path))
        at = at_.find(path);
    problems_.push_back(at_.make(severity::error, at, path, std::move(message)));
}

namespace {

std::string shortened(const std::string& text)
{
    constexpr std::size_t most = 60;
    auto out = text.substr(0, most);
    // Do not cut inside a UTF-8 character.
    while (out.size() < text.size() && !out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0U) == 0x80U)
        out.pop_back();
    for (char& c : out)
        if (static_cast<unsigned char>(c) < 0x20)
            c = ' ';
    return text.size() > most ? out + "…" : out;
}

} // namespace

void load_context::wrong(const node& n, const std::string& path, const std::string& complaint)
{
    error(n, path, "`" + shortened(n.text) + "` is not valid: " + complaint);
}

void load_context::wrong_kind(const node& n, const std::string& path, const std::string& expected)
{
    const char* found = n.is(node_kind::map)        ? "a map"
                        : n.is(node_kind::sequence) ? "a list"
                        : n.is(node_kind::null)     ? "nothing"
                                                    : "a single value";
    error(n, path, std::string("found ") + found + "; expected: " + expected);
}

std::optional<std::string> load_context::expand(const node& n, const std::string& path, bool& used_variable)
{
    std::string out;
    const auto& in = n.text;
    for (std::size_t i = 0; i < in.size();) {
        if (in.compare(i, 3, "$${") == 0) {
            out += "${";
            i += 3;
        } else if (in.compare(i, 2, "${") == 0) {
            const auto end = in.find('}', i);
            const auto name = end == std::string::npos ? std::string{} : in.substr(i + 2, end - i - 2);
            const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
                return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
            });
            if (!is_name) {
                error(n, path, "`${` must be followed by a variable's name and `}`; write `$${` for a literal `${`");
                return std::nullopt;
            }
            const auto value = env_.variable(name);
            if (!value) {
                error(n, path, "the environment variable " + name + " is not set; set it before the gateway starts");
                return std::nullopt;
            }
            out += *value;
            used_variable = true;
            i = end + 1;
        } else {
            out += in[i++];
        }
    }
    return out;
}

std::optional<std::string> load_context::text(const node& n, const std::string& path)
{
    bool used_variable = false;
    auto out = expand(n, path, used_variable);
    if (used_variable)
        at_.mark_from_environment(path);
    return out;
}

std::optional<std::string> load_context::secret_text(const node& n, const std::string& path)
{
    auto out = text(n, path);
    if (!out || !out->starts_with("file:"))
        return out;
    auto file = std::filesystem::path(out->substr(5));
    if (file.is_relative())
        file = folder_of(n.file) / file;
    constexpr std::uintmax_t most = std::uintmax_t{64} * 1024;
    auto read = env_.read(file, most);
    if (!read.complaint.empty()) {
        error(n, path, "the secret file cannot be read: " + read.complaint);
        return std::nullopt;
    }
    while (!read.text.empty() && (read.text.back() == '\n' || read.text.back() == '\r'))
        read.text.pop_back();
    if (read.text.empty()) {
        error(n, path, "the secret file is empty; write the secret on its first line");
        return std::nullopt;
    }
    return read.text;
}

std::string load_context::path_text(const node& n, const std::string& path, const std::string& text)
{
    const auto file = std::filesystem::path(text);
    if (text.empty() || file.is_absolute())
        return text;
    const auto folder = folder_of(n.file);
    at_.add_relative({path, text, folder.string()});
    return (folder / file).lexically_normal().string();
}

void load_context::note(const std::string& path, const node& key, const node& value)
{
    const node& n = value.is(node_kind::scalar) ? value : key;
    at_.add(path, {n.file, n.line, n.column});
}

std::filesystem::path load_context::folder_of(int file) const
{
    return std::filesystem::path(at_.file(file)).parent_path();
}

namespace {

std::string condition_text(const char* governing, const char* value)
{
    return *governing ? std::string(governing) + ": " + value : std::string{};
}

bool is_nothing(const json& value)
{
    return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty());
}

} // namespace

// ---- load

void load_walk::only_with(const char* governing, const char* value, bool active)
{
    // When the governing key is invalid, it is unknown which keys are valid with it, so none is reported.
    uncertain_ = *governing && l_.failed(path_of(governing));
    only_with_ = !active && !uncertain_ ? condition_text(governing, value) : std::string{};
}

void load_walk::visit(const char* name, const type& t, void* field, const key_options& a)
{
    names_.emplace_back(name);
    const auto path = path_of(name);
    const auto it = std::find_if(n_.entries.begin(), n_.entries.end(),
                                 [&](const auto& entry) { return entry.first->text == name; });
    if (it == n_.entries.end()) {
        if (!a.required || !only_with_.empty() || uncertain_)
            return;
        l_.mark_failed(path);
        const auto example = *a.example ? "write e.g. `" + std::string(name) + ": " + a.example + "`" : t.type_name(a);
        missing_.push_back({name, "this key is missing; " + example});
        return;
    }
    l_.note(path, *it->first, *it->second);
    if (!only_with_.empty())
        return l_.error(*it->first, path, "this key is valid only with `" + only_with_ + "`");
    t.load(l_, *it->second, path, a, field);
}

void load_walk::report_unknown_and_missing()
{
    std::set<std::string> meant; // known keys that unknown ones resemble
    for (const auto& [key, value] : n_.entries) {
        if (std::find(names_.begin(), names_.end(), key->text) != names_.end())
            continue;
        auto hint = did_you_mean(key->text, names_);
        if (hint.empty()) {
            hint = "; the keys here are ";
            for (std::size_t i = 0; i < names_.size(); ++i)
                hint += (i ? ", " : "") + names_[i];
        }
        meant.insert(nearest_name(key->text, names_));
        l_.error(*key, path_of(key->text), "there is no such key" + hint);
    }
    for (const auto& [name, message] : missing_)
        if (!meant.contains(name))
            l_.error(n_, path_of(name), message);
}

// ---- schema

void schema_walk::only_with(const char* governing, const char* value, bool)
{
    note_ = condition_text(governing, value);
}

void schema_walk::visit(const char* name, const type& t, void* field, const key_options& a)
{
    auto schema = t.schema(a);
    schema["description"] = std::string(a.doc) + (note_.empty() ? "" : " Only with `" + note_ + "`.");
    const auto standard = t.default_value(a, field);
    if (!is_nothing(standard) && !a.required)
        schema["default"] = standard;
    properties_[name] = std::move(schema);
    if (a.required && note_.empty())
        required_.push_back(name);
}

json schema_walk::take()
{
    json out{{"type", {"object", "null"}}, {"additionalProperties", false}, {"properties", std::move(properties_)}};
    if (!required_.empty())
        out["required"] = std::move(required_);
    return out;
}

// ---- keys

void key_walk::only_with(const char* governing, const char* value, bool)
{
    only_with_ = condition_text(governing, value);
}

void key_walk::visit(const char* name, const type& t, void* field, const key_options& a)
{
    key_info info;
    info.path = path_.empty() ? name : path_ + "." + name;
    info.type = t.type_name(a);
    info.bounds = t.bounds(a);
    info.only_with = only_with_;
    info.required = a.required;
    info.doc = a.doc;
    info.example = a.example;
    const auto standard = t.default_value(a, field);
    if (!is_nothing(standard) && !a.required)
        info.default_value = standard.is_string() ? standard.get<std::string>() : standard.dump();
    const auto path = info.path;
    out_.push_back(std::move(info));
    t.list_keys(out_, path);
}

} // namespace headgate::config
