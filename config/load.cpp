#include "config/load.hpp"

#include "config/checker.hpp"
#include "config/include.hpp"
#include "config/shapes.hpp"

#include <algorithm>
#include <tuple>

namespace headgate::config {

namespace {

void sort_by_place(std::vector<problem>& problems, const places& at)
{
    std::stable_sort(problems.begin(), problems.end(), [&](const problem& a, const problem& b) {
        return std::tuple(at.order_of(a.file), a.line, a.column) < std::tuple(at.order_of(b.file), b.line, b.column);
    });
}

} // namespace

load_result load_text(const std::string& text, const std::string& shown_name, const outside& world)
{
    load_result result;
    const auto at = std::make_shared<places>();
    // A file that cannot be read stops here; mistakes in one that can are collected to the end.
    const auto files = read_with_includes(text, shown_name, world, *at, result.problems);
    if (files.usable) {
        gateway_config config;
        loading l(*at, result.problems, world);
        type_of<gateway_config>().load(l, files.root, {}, {}, &config);
        checker check{.config = config, .at = *at, .loaded = l, .problems = result.problems, .world = world};
        check_all(check);
        config.places = at;
        if (!has_errors(result.problems))
            result.config = std::move(config);
    }
    sort_by_place(result.problems, *at);
    return result;
}

load_result load_file(const std::filesystem::path& file, const outside& world)
{
    auto read = world.read(file, max_file_bytes);
    if (!read.complaint.empty())
        return {{}, {{severity::error, file.string(), 0, 0, {}, read.complaint}}};
    return load_text(read.text, file.string(), world);
}

} // namespace headgate::config
