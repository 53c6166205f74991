// Where each value of the configuration stood: path -> file, line, column. Lets a check that runs on the typed model
// still point at the operator's text, and tells a value that was given from one that is the default.
#pragma once

#include "config/problem.hpp"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headgate::config {

struct place
{
    int file = 0;
    int line = 0;
    int column = 0;
    bool from_environment = false; // holds the value of a ${VARIABLE}: not to be shown
};

class places
{
public:
    int add_file(std::string shown_name);
    const std::string& file(int id) const { return files_[static_cast<std::size_t>(id)]; }

    std::size_t order_of(const std::string& shown_name) const; // the order in which files were read
    bool has_file(const std::string& shown_name) const;

    void add(const std::string& path, place at) { places_.emplace(path, at); }
    void mark_from_environment(const std::string& path);

    bool given(const std::string& path) const { return places_.contains(path); }
    bool is_from_environment(const std::string& path) const;
    // The place of `path`, or of the nearest thing around it that was written down.
    place find(std::string_view path) const;

    problem make(severity level, const std::string& path, std::string message) const;
    problem make(severity level, place at, const std::string& path, std::string message) const;

private:
    std::vector<std::string> files_;
    std::unordered_map<std::string, place> places_;
};

} // namespace headgate::config
