#include "config/problem.hpp"

#include <algorithm>
#include <numeric>

namespace headgate::config {

std::string to_string(const problem& p)
{
    std::string out = p.file;
    if (p.line > 0)
        out += ":" + std::to_string(p.line) + ":" + std::to_string(p.column);
    out += ": ";
    if (p.level == severity::warning)
        out += "warning: ";
    if (!p.path.empty())
        out += p.path + ": ";
    return out + p.message;
}

bool has_errors(const std::vector<problem>& problems)
{
    return std::any_of(problems.begin(), problems.end(), [](const problem& p) { return p.level == severity::error; });
}

namespace {

// Counts letters that are added, removed, changed or swapped with their neighbour.
std::size_t edit_distance(const std::string& a, const std::string& b)
{
    std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
    std::iota(above.begin(), above.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before = above;
        above = row;
    }
    return above[b.size()];
}

} // namespace

std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates)
{
    // A third of the letters may differ: `limt` finds `limit`, `x` finds none.
    const std::size_t allowed = std::max<std::size_t>(1, name.size() / 3);
    std::size_t best = allowed + 1;
    std::string found;
    if (name.size() < 2 || name.size() > 64)
        return found;
    for (const auto& candidate : candidates) {
        if (candidate.size() > name.size() + allowed || name.size() > candidate.size() + allowed)
            continue;
        const auto distance = edit_distance(name, candidate);
        if (distance < best) {
            best = distance;
            found = candidate;
        }
    }
    return found;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates)
{
    const auto near = nearest_name(name, candidates);
    return near.empty() ? std::string{} : "; did you mean `" + near + "`?";
}

int places::add_file(std::string shown_name)
{
    files_.push_back(std::move(shown_name));
    return static_cast<int>(files_.size()) - 1;
}

std::size_t places::order_of(const std::string& shown_name) const
{
    const auto it = std::find(files_.begin(), files_.end(), shown_name);
    return static_cast<std::size_t>(it - files_.begin());
}

bool places::has_file(const std::string& shown_name) const
{
    return std::find(files_.begin(), files_.end(), shown_name) != files_.end();
}

void places::mark_from_environment(const std::string& path)
{
    if (auto it = places_.find(path); it != places_.end())
        it->second.from_environment = true;
}

bool places::is_from_environment(const std::string& path) const
{
    auto it = places_.find(path);
    return it != places_.end() && it->second.from_environment;
}

place places::find(std::string_view path) const
{
    while (!path.empty()) {
        if (auto it = places_.find(std::string(path)); it != places_.end())
            return it->second;
        const auto end = path.find_last_of(".[");
        path = end == std::string_view::npos ? std::string_view{} : path.substr(0, end);
    }
    return {};
}

problem places::make(severity level, const std::string& path, std::string message) const
{
    return make(level, find(path), path, std::move(message));
}

problem places::make(severity level, place at, const std::string& path, std::string message) const
{
    return {level, file(at.file), at.line, at.column, path, std::move(message)};
}

} // namespace headgate::config
