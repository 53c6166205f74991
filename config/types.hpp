// The types of the configuration's values: scalars, structs with described keys, lists, maps by name and optional
// values. type_of<T>() selects one.
#pragma once

#include "config/choices.hpp"
#include "config/description.hpp"
#include "config/values.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace headgate::config {

// How a single value of type T is parsed, shown and documented.
template <class T>
struct scalar;

#define HEADGATE_SCALAR(T)                                                                                             \
    template <>                                                                                                        \
    struct scalar<T>                                                                                                   \
    {                                                                                                                  \
        static parsed<T> parse(const std::string& text, const key_options& a);                                         \
        static json show(const T& value, const key_options& a);                                                        \
        static json schema(const key_options& a);                                                                      \
        static std::string type_name(const key_options& a);                                                            \
        static std::string bounds(const key_options& a);                                                               \
    }
HEADGATE_SCALAR(bool);
HEADGATE_SCALAR(std::uint64_t);
HEADGATE_SCALAR(std::string);
HEADGATE_SCALAR(secret);
HEADGATE_SCALAR(duration);
HEADGATE_SCALAR(byte_size);
HEADGATE_SCALAR(network);
HEADGATE_SCALAR(host_port);
HEADGATE_SCALAR(limit_value);
HEADGATE_SCALAR(outcome_match);
HEADGATE_SCALAR(redis_url);
HEADGATE_SCALAR(delay_value);
#undef HEADGATE_SCALAR

// Enumerations, with their names from config/choices.hpp.
template <class T>
concept named_enum = requires
{
    names_of(T{});
};

parsed<std::size_t> parse_choice(const std::string& text, const std::string_view* names, std::size_t count);
std::string choice_names(const std::string_view* names, std::size_t count);

template <named_enum T>
struct scalar<T>
{
    static constexpr auto names = names_of(T{});

    static parsed<T> parse(const std::string& text, const key_options&)
    {
        const auto found = parse_choice(text, names.data(), names.size());
        return {static_cast<T>(found.value), found.complaint};
    }
    static json show(const T& value, const key_options&) { return std::string(names[static_cast<std::size_t>(value)]); }
    static json schema(const key_options&)
    {
        json out;
        for (const auto& name : names)
            out["enum"].push_back(std::string(name));
        return out;
    }
    static std::string type_name(const key_options&) { return choice_names(names.data(), names.size()); }
    static std::string bounds(const key_options&) { return {}; }
};

template <class T>
class scalar_type : public type
{
public:
    void load(load_context& l, const node& n, const std::string& path, const key_options& a, void* field) const override
    {
        if (!n.is(node_kind::scalar))
            return l.wrong_kind(n, path, type_name(a));
        auto text = a.is_secret ? l.secret_text(n, path) : l.text(n, path);
        if (!text)
            return;
        if (a.is_path && a.is_path(*text))
            text = l.path_text(n, path, *text);
        auto got = scalar<T>::parse(*text, a);
        if (got)
            *static_cast<T*>(field) = std::move(got.value);
        else if (a.is_secret)
            l.error(n, path, "the value (not shown) is not valid: " + got.complaint);
        else
            l.wrong(n, path, got.complaint);
    }
    json default_value(const key_options& a, const void* field) const override
    {
        return scalar<T>::show(*static_cast<const T*>(field), a);
    }
    json schema(const key_options& a) const override { return scalar<T>::schema(a); }
    std::string type_name(const key_options& a) const override { return a.what ? a.what : scalar<T>::type_name(a); }
    std::string bounds(const key_options& a) const override { return scalar<T>::bounds(a); }
};

// ---- structs, lists, maps, optional values

// What some structs have in addition to keys: a short form, a check of the whole. Specialised in config/describe.hpp.
template <class T>
struct struct_traits
{
    static void prepare(load_context&, T&) {}
    static bool load_short(load_context&, const node&, const std::string&, T&) { return false; }
    static json short_schema() { return nullptr; }
    static json default_value(const T&) { return nullptr; } // null: the default is not documented
    static std::string short_type_name() { return {}; }
    static void verify(load_context&, const node&, const std::string&, const T&) {}
};

template <class T>
class struct_type : public type
{
public:
    void load(load_context& l, const node& n, const std::string& path, const key_options& a, void* field) const override
    {
        T& x = *static_cast<T*>(field);
        struct_traits<T>::prepare(l, x);
        if (!n.is(node_kind::map) && struct_traits<T>::load_short(l, n, path, x))
            return;
        if (!n.is(node_kind::map) && !n.is(node_kind::null))
            return l.wrong_kind(n, path, type_name(a));
        load_walk walk(l, n, path);
        describe(walk, x);
        walk.report_unknown_and_missing();
        struct_traits<T>::verify(l, n, path, x);
    }
    json default_value(const key_options&, const void* field) const override
    {
        return struct_traits<T>::default_value(*static_cast<const T*>(field));
    }
    json schema(const key_options&) const override
    {
        schema_walk walk;
        T x{};
        describe(walk, x);
        auto whole = walk.take();
        auto brief = struct_traits<T>::short_schema();
        if (brief.is_null())
            return whole;
        return {{"anyOf", {brief, whole}}};
    }
    std::string type_name(const key_options& a) const override
    {
        const auto brief = struct_traits<T>::short_type_name();
        const std::string whole = a.what ? a.what : "map of keys";
        return brief.empty() ? whole : brief + ", or " + whole;
    }
    void list_keys(key_list& out, const std::string& path) const override
    {
        key_walk walk(out, path);
        T x{};
        describe(walk, x);
    }
};

template <class T>
class list_type : public type
{
public:
    void load(load_context& l, const node& n, const std::string& path, const key_options& a, void* field) const override
    {
        auto& out = *static_cast<std::vector<T>*>(field);
        out.clear();
        if (n.is(node_kind::null))
            return;
        if (n.is(node_kind::scalar) && a.one_or_many)
            return type_of<T>().load(l, n, path, a, &out.emplace_back());
        if (!n.is(node_kind::sequence))
            return l.wrong_kind(n, path, type_name(a));
        out.reserve(n.items.size());
        for (const node* item : n.items) {
            const auto place = path + "[" + std::to_string(out.size()) + "]";
            l.note(place, *item, *item);
            type_of<T>().load(l, *item, place, a, &out.emplace_back());
        }
    }
    json schema(const key_options& a) const override
    {
        json list{{"type", {"array", "null"}}, {"items", type_of<T>().schema(a)}};
        if (!a.one_or_many)
            return list;
        return {{"anyOf", {type_of<T>().schema(a), list}}};
    }
    std::string type_name(const key_options& a) const override
    {
        const auto item = type_of<T>().type_name(a);
        return a.one_or_many ? item + ", or a list of them" : "list, each " + item;
    }
    std::string bounds(const key_options& a) const override { return type_of<T>().bounds(a); }
    void list_keys(key_list& out, const std::string& path) const override { type_of<T>().list_keys(out, path + "[]"); }
};

template <class T>
class map_type : public type
{
public:
    void load(load_context& l, const node& n, const std::string& path, const key_options& a, void* field) const override
    {
        auto& out = *static_cast<std::map<std::string, T>*>(field);
        out.clear();
        if (n.is(node_kind::null))
            return;
        if (!n.is(node_kind::map))
            return l.wrong_kind(n, path, type_name(a));
        for (const auto& [key, value] : n.entries) {
            const auto place = path + "." + key->text;
            l.note(place, *key, *value);
            if (a.check_key)
                if (const auto complaint = a.check_key(key->text); !complaint.empty())
                    l.wrong(*key, place, complaint);
            type_of<T>().load(l, *value, place, a, &out[key->text]);
        }
    }
    json schema(const key_options& a) const override
    {
        return {{"type", {"object", "null"}}, {"additionalProperties", type_of<T>().schema(a)}};
    }
    std::string type_name(const key_options& a) const override
    {
        return "map of names, each " + type_of<T>().type_name(a);
    }
    std::string bounds(const key_options& a) const override { return type_of<T>().bounds(a); }
    void list_keys(key_list& out, const std::string& path) const override
    {
        type_of<T>().list_keys(out, path + ".NAME");
    }
};

template <class T>
class optional_type : public type
{
public:
    void load(load_context& l, const node& n, const std::string& path, const key_options& a, void* field) const override
    {
        type_of<T>().load(l, n, path, a, &static_cast<std::optional<T>*>(field)->emplace());
    }
    json default_value(const key_options& a, const void* field) const override
    {
        const auto& value = *static_cast<const std::optional<T>*>(field);
        return value ? type_of<T>().default_value(a, &*value) : json(nullptr);
    }
    json schema(const key_options& a) const override { return type_of<T>().schema(a); }
    std::string type_name(const key_options& a) const override { return type_of<T>().type_name(a); }
    std::string bounds(const key_options& a) const override { return type_of<T>().bounds(a); }
    void list_keys(key_list& out, const std::string& path) const override { type_of<T>().list_keys(out, path); }
};

template <class T>
struct type_picker
{
    using type = struct_type<T>;
};
template <class T>
concept is_scalar = requires(const T& x, const key_options& a)
{
    scalar<T>::show(x, a);
};
template <is_scalar T>
struct type_picker<T>
{
    using type = scalar_type<T>;
};
template <class T>
struct type_picker<std::vector<T>>
{
    using type = list_type<T>;
};
template <class T>
struct type_picker<std::map<std::string, T>>
{
    using type = map_type<T>;
};
template <class T>
struct type_picker<std::optional<T>>
{
    using type = optional_type<T>;
};

template <class T>
const type& type_of()
{
    static const typename type_picker<T>::type instance;
    return instance;
}

} // namespace headgate::config
