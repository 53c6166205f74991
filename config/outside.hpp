// All that the loader asks of the world: files and environment variables. Injected, so that tests and the fuzzer
// decide what there is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace headgate::config {

struct file_text
{
    std::string text;
    std::string complaint; // why there is no text; empty on success
};

struct outside
{
    std::function<std::optional<std::string>(const std::string& name)> variable;
    std::function<file_text(const std::filesystem::path& file, std::uintmax_t most)> read;
};

// getenv and the file system.
outside the_real_outside();

// A regular file of at most `most` bytes; says which of missing, directory, unreadable, too large it is otherwise.
file_text read_regular_file(const std::filesystem::path& file, std::uintmax_t most);

} // namespace headgate::config
