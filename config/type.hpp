// How one kind of value is read, shown and documented. describe() names a struct's keys once, with their types; the
// loader, the dump, the JSON schema and the key list all walk that one description, so they cannot disagree.
#pragma once

#include "config/loading.hpp"
#include "config/yaml_tree.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::config {

using json = nlohmann::ordered_json;

// What describe() says of a key beside its name and type.
struct about
{
    const char* doc = "";
    bool required = false;
    std::uint64_t min = 0; // counts; microseconds of a duration; bytes of a size
    std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
    const char* zero_word = nullptr;                      // the word for 0: auto, unlimited
    bool unlimited = false;                               // a size may be `unlimited`
    bool percent = false;                                 // a count is written 10%
    bool host_name = false;                               // host:port may have a name for a host
    bool one_or_many = false;                             // a list of one may be written without brackets
    bool is_secret = false;                               // never shown
    bool dumped = true;                                   // `include` has been carried out by the time of a dump
    std::string (*check)(std::string_view) = nullptr;     // of a text; answers with a complaint
    std::string (*check_key)(std::string_view) = nullptr; // of a map's keys
    const char* what = nullptr;                           // in place of the type's own words, e.g. "path"
    const char* example = "";
};

// Masks what came out of the environment on its way into a dump.
struct dumping
{
    const places* at = nullptr;
};

struct key_info
{
    std::string path; // listeners[].tls.certificate
    std::string type;
    std::string default_value; // empty: none
    std::string bounds;
    std::string only_with; // algorithm: leaky_bucket
    bool required = false;
    std::string doc;
    std::string example;
};
using key_list = std::vector<key_info>;

class type
{
public:
    virtual ~type() = default;
    virtual void load(loading& l, const node& n, const std::string& path, const about& a, void* field) const = 0;
    virtual json dump(const dumping& d, const std::string& path, const about& a, const void* field) const = 0;
    virtual json schema(const about& a) const = 0;
    virtual std::string words(const about& a) const = 0;
    virtual std::string bounds(const about&) const { return {}; }
    // The keys inside, for maps of keys.
    virtual void list_keys(key_list&, const std::string&) const {}
};

template <class T>
const type& type_of();

class visitor
{
public:
    virtual ~visitor() = default;

    template <class T>
    void key(const char* name, T& field, const about& a)
    {
        visit(name, type_of<T>(), &field, a);
    }

    // The keys up to the next call are for `governing: value` only; `active` says whether that is so here.
    virtual void only_with(const char* governing, const char* value, bool active) = 0;
    void for_all() { only_with("", "", true); }

protected:
    virtual void visit(const char* name, const type& t, void* field, const about& a) = 0;
};

} // namespace headgate::config
