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

// Letters added, lost, changed, or two neighbours swapped.
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
    // A third of the letters may differ: `limt` finds `limit`, `x` finds nothing.
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

} // namespace headgate::config
