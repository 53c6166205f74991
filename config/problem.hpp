// Problems of a configuration, and the position in the file of each of its values.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headgate::config {

enum class severity
{
    error,   // the gateway does not start
    warning, // the gateway starts, but this is probably not intended
};

struct problem
{
    severity level = severity::error;
    std::string file;
    int line = 0;        // 1-based; 0: the file as a whole
    int column = 0;      // 1-based, in bytes
    std::string path;    // chains.api.rules[1].limit; empty: the file as a whole
    std::string message; // what is wrong; how to correct it
};

// `gateway.yaml:12:7: chains.api.rules[1].limit: what is wrong; what would be right`
std::string to_string(const problem& p);

bool has_errors(const std::vector<problem>& problems);

// Returns the candidate that is most similar to `name`, or an empty string when none is similar.
std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

// Returns "; did you mean `x`?", or an empty string when no candidate is similar.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates);

// The position of a value.
struct place
{
    int file = 0;
    int line = 0;
    int column = 0;
    bool from_environment = false; // contains the value of a ${VARIABLE}, which must not be shown
};

// A relative path in a configuration. It starts at the folder of the file that contains it.
struct relative_path
{
    std::string key;     // stores.local.snapshot.path
    std::string written; // after its variables were replaced
    std::string folder;  // empty: the working directory
};

// The position of each value by its path. Checks of the typed model use it to point at the file, and to distinguish a
// value that was given from a default.
class places
{
public:
    int add_file(std::string shown_name);
    const std::string& file(int id) const { return files_[static_cast<std::size_t>(id)]; }

    std::size_t order_of(const std::string& shown_name) const; // the order in which files were read
    bool has_file(const std::string& shown_name) const;

    void add(const std::string& path, place at) { places_.emplace(path, at); }
    void mark_from_environment(const std::string& path);

    void add_relative(relative_path path) { relative_paths_.push_back(std::move(path)); }
    const std::vector<relative_path>& relative_paths() const { return relative_paths_; }

    bool given(const std::string& path) const { return places_.contains(path); }
    bool is_from_environment(const std::string& path) const;
    // Returns the place of `path`, or of the innermost value around it that has one.
    place find(std::string_view path) const;

    problem make(severity level, const std::string& path, std::string message) const;
    problem make(severity level, place at, const std::string& path, std::string message) const;

private:
    std::vector<std::string> files_;
    std::unordered_map<std::string, place> places_;
    std::vector<relative_path> relative_paths_;
};

} // namespace headgate::config
