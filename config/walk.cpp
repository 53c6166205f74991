#include "config/walk.hpp"

#include <algorithm>
#include <set>

namespace headgate::config {

namespace {

std::string pair_words(const char* governing, const char* value)
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
    // Where the governing key is itself wrong nobody can say what belongs to it, so nothing is held against it.
    uncertain_ = *governing && l_.failed(path_of(governing));
    only_with_ = !active && !uncertain_ ? pair_words(governing, value) : std::string{};
}

void load_walk::visit(const char* name, const type& t, void* field, const about& a)
{
    names_.emplace_back(name);
    const auto path = path_of(name);
    const auto it = std::find_if(n_.entries.begin(), n_.entries.end(),
                                 [&](const auto& entry) { return entry.first->text == name; });
    if (it == n_.entries.end()) {
        if (!a.required || !only_with_.empty() || uncertain_)
            return;
        l_.mark_failed(path);
        const auto example = *a.example ? "write e.g. `" + std::string(name) + ": " + a.example + "`" : t.words(a);
        missing_.push_back({name, "this key is missing; " + example});
        return;
    }
    l_.note(path, *it->first, *it->second);
    if (!only_with_.empty())
        return l_.error(*it->first, path, "this key does not fit here; it goes with `" + only_with_ + "`");
    t.load(l_, *it->second, path, a, field);
}

void load_walk::report_unknown_and_missing()
{
    std::set<std::string> meant; // by unknown keys
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

// ---- dump

void dump_walk::visit(const char* name, const type& t, void* field, const about& a)
{
    if (!active_ || !a.dumped)
        return;
    auto value = t.dump(d_, path_.empty() ? name : path_ + "." + name, a, field);
    if (!is_nothing(value))
        out_[name] = std::move(value);
}

// ---- schema

void schema_walk::only_with(const char* governing, const char* value, bool) { note_ = pair_words(governing, value); }

void schema_walk::visit(const char* name, const type& t, void* field, const about& a)
{
    auto schema = t.schema(a);
    schema["description"] = std::string(a.doc) + (note_.empty() ? "" : " Only with `" + note_ + "`.");
    const auto standard = t.dump({}, {}, a, field);
    if (!is_nothing(standard) && !standard.is_structured() && !a.required)
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

void key_walk::only_with(const char* governing, const char* value, bool) { only_with_ = pair_words(governing, value); }

void key_walk::visit(const char* name, const type& t, void* field, const about& a)
{
    key_info info;
    info.path = path_.empty() ? name : path_ + "." + name;
    info.type = t.words(a);
    info.bounds = t.bounds(a);
    info.only_with = only_with_;
    info.required = a.required;
    info.doc = a.doc;
    info.example = a.example;
    const auto standard = t.dump({}, {}, a, field);
    if (!is_nothing(standard) && !standard.is_structured() && !a.required)
        info.default_value = standard.is_string() ? standard.get<std::string>() : standard.dump();
    const auto path = info.path;
    out_.push_back(std::move(info));
    t.list_keys(out_, path);
}

} // namespace headgate::config
