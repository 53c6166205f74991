// How a configuration is read and documented. describe() lists the keys of a struct once, with their types; the loader,
// the JSON schema and the key list all use that description, so they cannot differ.
#pragma once

#include "config/environment.hpp"
#include "config/model.hpp"
#include "config/problem.hpp"
#include "config/yaml_tree.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace headgate::config {

// The state of one load: positions of values, problems so far, and the environment.
class load_context
{
public:
    load_context(places& at, std::vector<problem>& problems, const environment& env)
        : at_(at), problems_(problems), env_(env)
    {}

    void error(const node& n, const std::string& path, std::string message);
    // Reports "`text` is not valid: complaint". A ${VARIABLE} in the text is not expanded.
    void wrong(const node& n, const std::string& path, const std::string& complaint);
    void wrong_kind(const node& n, const std::string& path, const std::string& expected);

    // Returns the scalar's text with every ${VARIABLE} expanded, or reports an error and returns nothing.
    std::optional<std::string> text(const node& n, const std::string& path);
    // As text(); `file:/path` is replaced by the content of the file.
    std::optional<std::string> secret_text(const node& n, const std::string& path);

    // Returns the path that a text stands for: a relative one starts from the folder of the file that contains it.
    std::string path_text(const node& n, const std::string& path, const std::string& text);

    void note(const std::string& path, const node& key, const node& value);
    // Marks the value at `path` as one that no check may rely on.
    void mark_failed(const std::string& path) { failed_.insert(path); }
    bool failed(const std::string& path) const { return failed_.contains(path); }

    // The top-level `answers`, which are the defaults of a route's `answers`.
    answers_config answers;
    // Returns the folder that relative paths in this file start from.
    std::filesystem::path folder_of(int file) const;

private:
    std::optional<std::string> expand(const node& n, const std::string& path, bool& used_variable);

    places& at_;
    std::vector<problem>& problems_;
    const environment& env_;
    std::unordered_set<std::string> failed_;
};

using json = nlohmann::ordered_json;

// What describe() states about a key, besides its name and type.
struct key_options
{
    const char* doc = "";
    bool required = false;
    std::uint64_t min = 0; // counts; microseconds of a duration; bytes of a size
    std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
    const char* zero_name = nullptr;                      // how 0 is written: auto, unlimited
    bool unlimited = false;                               // a size or duration may be `unlimited`
    bool percent = false;                                 // a count is written 10%
    bool host_name = false;                               // the host of host:port may be a name
    bool one_or_many = false;                             // a list of one may be written without brackets
    bool is_secret = false;                               // never shown
    std::string (*check)(std::string_view) = nullptr;     // of a text; returns what is wrong, or an empty string
    std::string (*check_key)(std::string_view) = nullptr; // the same for the keys of a map
    bool (*is_path)(std::string_view) = nullptr;          // a relative path starts at the file that contains it
    const char* what = nullptr;                           // replaces the name of the type, e.g. "path"
    const char* example = "";
};

// One key of the documentation.
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

// How values of one type are read and documented.
class type
{
public:
    virtual ~type() = default;
    virtual void load(load_context& l, const node& n, const std::string& path, const key_options& a,
                      void* field) const = 0;
    // The value of `field` as it is written in YAML; null for lists, maps and structs.
    virtual json default_value(const key_options&, const void*) const { return nullptr; }
    virtual json schema(const key_options& a) const = 0;
    virtual std::string type_name(const key_options& a) const = 0;
    virtual std::string bounds(const key_options&) const { return {}; }
    // Appends the keys inside a map of keys.
    virtual void list_keys(key_list&, const std::string&) const {}
};

template <class T>
const type& type_of();

// What describe() calls for every key of a struct.
class visitor
{
public:
    virtual ~visitor() = default;

    template <class T>
    void key(const char* name, T& field, const key_options& a)
    {
        visit(name, type_of<T>(), &field, a);
    }

    // The keys up to the next call are valid only with `governing: value`; `active` tells whether it has that value.
    virtual void only_with(const char* governing, const char* value, bool active) = 0;
    void for_all() { only_with("", "", true); }

protected:
    virtual void visit(const char* name, const type& t, void* field, const key_options& a) = 0;
};

// Loads a struct from a map, and reports unknown and missing keys.
class load_walk : public visitor
{
public:
    load_walk(load_context& l, const node& n, const std::string& path) : l_(l), n_(n), path_(path) {}
    void only_with(const char* governing, const char* value, bool active) override;
    void report_unknown_and_missing();

protected:
    void visit(const char* name, const type& t, void* field, const key_options& a) override;

private:
    std::string path_of(const std::string& name) const { return path_.empty() ? name : path_ + "." + name; }

    load_context& l_;
    const node& n_;
    const std::string& path_;
    struct missing_key_note
    {
        std::string name;
        std::string message;
    };
    std::vector<std::string> names_;
    std::vector<missing_key_note> missing_;
    std::string only_with_;  // the condition of the following keys, when it does not hold
    bool uncertain_ = false; // the governing key is invalid
};

// Writes the JSON schema of a struct.
class schema_walk : public visitor
{
public:
    void only_with(const char* governing, const char* value, bool) override;
    json take();

protected:
    void visit(const char* name, const type& t, void* field, const key_options& a) override;

private:
    std::string note_;
    json properties_ = json::object();
    json required_ = json::array();
};

// Lists the keys of a struct.
class key_walk : public visitor
{
public:
    key_walk(key_list& out, const std::string& path) : out_(out), path_(path) {}
    void only_with(const char* governing, const char* value, bool active) override;

protected:
    void visit(const char* name, const type& t, void* field, const key_options& a) override;

private:
    key_list& out_;
    const std::string& path_;
    std::string only_with_;
};

} // namespace headgate::config
