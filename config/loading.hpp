// What one load carries along: where things stood, what is wrong so far, and the world outside.
#pragma once

#include "config/model.hpp"
#include "config/outside.hpp"
#include "config/places.hpp"
#include "config/yaml_tree.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace headgate::config {

class loading
{
public:
    loading(places& at, std::vector<problem>& problems, const outside& world)
        : at_(at), problems_(problems), world_(world)
    {}

    void error(const node& n, const std::string& path, std::string message);
    // "`text` will not do: complaint". The text is as written, so a ${VARIABLE} is not expanded in it.
    void wrong(const node& n, const std::string& path, const std::string& complaint);
    void wrong_kind(const node& n, const std::string& path, const std::string& expected);

    // The scalar's text with every ${VARIABLE} filled in; nothing when that has already been reported as impossible.
    std::optional<std::string> text(const node& n, const std::string& path);
    // As text(), and `file:/path` is read as well.
    std::optional<std::string> secret_text(const node& n, const std::string& path);

    void note(const std::string& path, const node& key, const node& value);
    // Nothing may be concluded from the value at `path`.
    void mark_failed(const std::string& path) { failed_.insert(path); }
    bool failed(const std::string& path) const { return failed_.contains(path); }

    // A route's `answers` begin as the general ones.
    answers_config answers;
    // Where relative names of a file start.
    std::filesystem::path folder_of(int file) const;

private:
    std::optional<std::string> expand(const node& n, const std::string& path, bool& used_variable);

    places& at_;
    std::vector<problem>& problems_;
    const outside& world_;
    std::unordered_set<std::string> failed_;
};

} // namespace headgate::config
