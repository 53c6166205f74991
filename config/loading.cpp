#include "config/loading.hpp"

#include <algorithm>

namespace headgate::config {

void loading::error(const node& n, const std::string& path, std::string message)
{
    failed_.insert(path);
    // A list with a million mistakes must not become a million messages.
    constexpr std::size_t most_problems = 20'000;
    if (problems_.size() >= most_problems)
        return;
    place at{n.file, n.line, n.column};
    // A value that is not there stands where its key does.
    if (n.is(node_kind::null) && at_.given(path))
        at = at_.find(path);
    problems_.push_back(at_.make(severity::error, at, path, std::move(message)));
}

namespace {

std::string shortened(const std::string& text)
{
    constexpr std::size_t most = 60;
    auto out = text.substr(0, most);
    // Not in the middle of a UTF-8 character.
    while (out.size() < text.size() && !out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0U) == 0x80U)
        out.pop_back();
    for (char& c : out)
        if (static_cast<unsigned char>(c) < 0x20)
            c = ' ';
    return text.size() > most ? out + "…" : out;
}

} // namespace

void loading::wrong(const node& n, const std::string& path, const std::string& complaint)
{
    error(n, path, "`" + shortened(n.text) + "` will not do: " + complaint);
}

void loading::wrong_kind(const node& n, const std::string& path, const std::string& expected)
{
    const char* found = n.is(node_kind::map)        ? "a map"
                        : n.is(node_kind::sequence) ? "a list"
                        : n.is(node_kind::null)     ? "nothing"
                                                    : "a single value";
    error(n, path, std::string("found ") + found + "; expected: " + expected);
}

std::optional<std::string> loading::expand(const node& n, const std::string& path, bool& used_variable)
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
                error(n, path, "`${` must be followed by a variable's name and `}`; write `$${` for a plain `${`");
                return std::nullopt;
            }
            const auto value = world_.variable(name);
            if (!value) {
                error(n, path, "the environment variable " + name + " is not set; set it before the start");
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

std::optional<std::string> loading::text(const node& n, const std::string& path)
{
    bool used_variable = false;
    auto out = expand(n, path, used_variable);
    if (used_variable)
        at_.mark_from_environment(path);
    return out;
}

std::optional<std::string> loading::secret_text(const node& n, const std::string& path)
{
    auto out = text(n, path);
    if (!out || !out->starts_with("file:"))
        return out;
    auto file = std::filesystem::path(out->substr(5));
    if (file.is_relative())
        file = folder_of(n.file) / file;
    constexpr std::uintmax_t most = std::uintmax_t{64} * 1024;
    auto read = world_.read(file, most);
    if (!read.complaint.empty()) {
        error(n, path, "the secret's file cannot be used: " + read.complaint);
        return std::nullopt;
    }
    while (!read.text.empty() && (read.text.back() == '\n' || read.text.back() == '\r'))
        read.text.pop_back();
    if (read.text.empty()) {
        error(n, path, "the secret's file is empty; put the secret on its first line");
        return std::nullopt;
    }
    return read.text;
}

void loading::note(const std::string& path, const node& key, const node& value)
{
    const node& n = value.is(node_kind::scalar) ? value : key;
    at_.add(path, {n.file, n.line, n.column});
}

std::filesystem::path loading::folder_of(int file) const { return std::filesystem::path(at_.file(file)).parent_path(); }

} // namespace headgate::config
