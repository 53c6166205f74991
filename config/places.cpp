#include "config/places.hpp"

#include <algorithm>

namespace headgate::config {

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
