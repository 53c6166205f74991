// Files and environment variables, as the loader reads them. Injected, so that tests and the fuzzer provide their own.
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
    std::string complaint; // why the file could not be read; empty on success
};

struct environment
{
    std::function<std::optional<std::string>(const std::string& name)> variable;
    std::function<file_text(const std::filesystem::path& file, std::uintmax_t most)> read;
};

// Returns the environment of this process: getenv and the file system.
environment process_environment();

// Reads a regular file of at most `most` bytes. The complaint tells a missing file, a directory, an unreadable and a
// too large file apart.
file_text read_regular_file(const std::filesystem::path& file, std::uintmax_t most);

} // namespace headgate::config
