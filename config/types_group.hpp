// The types that hold others: structs with described keys, lists, maps by name, optional ones. type_of<T>() picks.
#pragma once

#include "config/describe.hpp"
#include "config/types_scalar.hpp"
#include "config/walk.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace headgate::config {

// What some structs have beyond their keys: a short form, a check of the whole. Specialised in shapes.hpp.
template <class T>
struct shape
{
    static void prepare(loading&, T&) {}
    static bool load_short(loading&, const node&, const std::string&, T&) { return false; }
    static json short_schema() { return nullptr; }
    static json short_dump(const T&) { return nullptr; } // null: it has no short form, or needs the long one
    static std::string short_words() { return {}; }
    static void verify(loading&, const node&, const std::string&, const T&) {}
};

template <class T>
class struct_type : public type
{
public:
    void load(loading& l, const node& n, const std::string& path, const about& a, void* field) const override
    {
        T& x = *static_cast<T*>(field);
        shape<T>::prepare(l, x);
        if (!n.is(node_kind::map) && shape<T>::load_short(l, n, path, x))
            return;
        if (!n.is(node_kind::map) && !n.is(node_kind::null))
            return l.wrong_kind(n, path, words(a));
        load_walk walk(l, n, path);
        describe(walk, x);
        walk.report_unknown_and_missing();
        shape<T>::verify(l, n, path, x);
    }
    json dump(const dumping& d, const std::string& path, const about&, const void* field) const override
    {
        if (auto brief = shape<T>::short_dump(*static_cast<const T*>(field)); !brief.is_null())
            return brief;
        dump_walk walk(d, path);
        // describe() takes what it walks by reference for the loader's sake; a dump only reads.
        describe(walk, const_cast<T&>(*static_cast<const T*>(field)));
        return walk.take();
    }
    json schema(const about&) const override
    {
        schema_walk walk;
        T x{};
        describe(walk, x);
        auto whole = walk.take();
        auto brief = shape<T>::short_schema();
        if (brief.is_null())
            return whole;
        return {{"anyOf", {brief, whole}}};
    }
    std::string words(const about& a) const override
    {
        const auto brief = shape<T>::short_words();
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
    void load(loading& l, const node& n, const std::string& path, const about& a, void* field) const override
    {
        auto& out = *static_cast<std::vector<T>*>(field);
        out.clear();
        if (n.is(node_kind::null))
            return;
        if (n.is(node_kind::scalar) && a.one_or_many)
            return type_of<T>().load(l, n, path, a, &out.emplace_back());
        if (!n.is(node_kind::sequence))
            return l.wrong_kind(n, path, words(a));
        out.reserve(n.items.size());
        for (const node* item : n.items) {
            const auto place = path + "[" + std::to_string(out.size()) + "]";
            l.note(place, *item, *item);
            type_of<T>().load(l, *item, place, a, &out.emplace_back());
        }
    }
    json dump(const dumping& d, const std::string& path, const about& a, const void* field) const override
    {
        const auto& list = *static_cast<const std::vector<T>*>(field);
        // A list of one may have been written without brackets.
        if (d.at && a.one_or_many && d.at->is_from_environment(path))
            return "***";
        json out = json::array();
        for (std::size_t i = 0; i < list.size(); ++i)
            out.push_back(type_of<T>().dump(d, path + "[" + std::to_string(i) + "]", a, &list[i]));
        return out;
    }
    json schema(const about& a) const override
    {
        json list{{"type", {"array", "null"}}, {"items", type_of<T>().schema(a)}};
        if (!a.one_or_many)
            return list;
        return {{"anyOf", {type_of<T>().schema(a), list}}};
    }
    std::string words(const about& a) const override
    {
        const auto item = type_of<T>().words(a);
        return a.one_or_many ? item + ", or a list of them" : "list, each " + item;
    }
    std::string bounds(const about& a) const override { return type_of<T>().bounds(a); }
    void list_keys(key_list& out, const std::string& path) const override { type_of<T>().list_keys(out, path + "[]"); }
};

template <class T>
class map_type : public type
{
public:
    void load(loading& l, const node& n, const std::string& path, const about& a, void* field) const override
    {
        auto& out = *static_cast<std::map<std::string, T>*>(field);
        out.clear();
        if (n.is(node_kind::null))
            return;
        if (!n.is(node_kind::map))
            return l.wrong_kind(n, path, words(a));
        for (const auto& [key, value] : n.entries) {
            const auto place = path + "." + key->text;
            l.note(place, *key, *value);
            if (a.check_key)
                if (const auto complaint = a.check_key(key->text); !complaint.empty())
                    l.wrong(*key, place, complaint);
            type_of<T>().load(l, *value, place, a, &out[key->text]);
        }
    }
    json dump(const dumping& d, const std::string& path, const about& a, const void* field) const override
    {
        json out = json::object();
        for (const auto& [name, value] : *static_cast<const std::map<std::string, T>*>(field))
            out[name] = type_of<T>().dump(d, path + "." + name, a, &value);
        return out;
    }
    json schema(const about& a) const override
    {
        return {{"type", {"object", "null"}}, {"additionalProperties", type_of<T>().schema(a)}};
    }
    std::string words(const about& a) const override { return "map of names, each " + type_of<T>().words(a); }
    std::string bounds(const about& a) const override { return type_of<T>().bounds(a); }
    void list_keys(key_list& out, const std::string& path) const override
    {
        type_of<T>().list_keys(out, path + ".NAME");
    }
};

template <class T>
class optional_type : public type
{
public:
    void load(loading& l, const node& n, const std::string& path, const about& a, void* field) const override
    {
        type_of<T>().load(l, n, path, a, &static_cast<std::optional<T>*>(field)->emplace());
    }
    json dump(const dumping& d, const std::string& path, const about& a, const void* field) const override
    {
        const auto& value = *static_cast<const std::optional<T>*>(field);
        return value ? type_of<T>().dump(d, path, a, &*value) : json(nullptr);
    }
    json schema(const about& a) const override { return type_of<T>().schema(a); }
    std::string words(const about& a) const override { return type_of<T>().words(a); }
    std::string bounds(const about& a) const override { return type_of<T>().bounds(a); }
    void list_keys(key_list& out, const std::string& path) const override { type_of<T>().list_keys(out, path); }
};

template <class T>
struct type_picker
{
    using type = struct_type<T>;
};
template <class T>
concept is_scalar = requires(const T& x, const about& a)
{
    scalar<T>::dump(x, a);
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
