#include "config/environment.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace headgate::config {

namespace {

std::string why(int error)
{
    if (error == ENOENT)
        return "there is no such file";
    return std::string("the file cannot be read: ") + std::strerror(error);
}

struct open_file
{
    explicit open_file(const std::filesystem::path& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK))
    {}
    ~open_file()
    {
        if (fd >= 0)
            ::close(fd);
    }
    open_file(const open_file&) = delete;
    open_file& operator=(const open_file&) = delete;
    int fd;
};

} // namespace

file_text read_regular_file(const std::filesystem::path& path, std::uintmax_t most)
{
    // O_NONBLOCK: opening a pipe must not block, so that it can be refused.
    open_file file(path);
    if (file.fd < 0)
        return {{}, why(errno)};
    struct stat about = {};
    if (::fstat(file.fd, &about) != 0)
        return {{}, why(errno)};
    if (S_ISDIR(about.st_mode))
        return {{}, "this is a directory; name a file in it"};
    if (!S_ISREG(about.st_mode))
        return {{}, "this is not a regular file"};

    const auto too_large = "the file is larger than " + std::to_string(most / 1024) + " KiB, the maximum";
    if (static_cast<std::uintmax_t>(about.st_size) > most)
        return {{}, too_large};
    // The size may change, or be 0 as under /proc, so read() decides where the file ends.
    std::string text;
    char piece[16384];
    for (;;) {
        const auto got = ::read(file.fd, piece, sizeof piece);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return {{}, why(errno)};
        if (got == 0)
            return {std::move(text), {}};
        text.append(piece, static_cast<std::size_t>(got));
        if (text.size() > most)
            return {{}, too_large};
    }
}

environment process_environment()
{
    return {.variable = [](const std::string& name) -> std::optional<std::string> {
                const char* value = std::getenv(name.c_str());
                return value ? std::optional<std::string>(value) : std::nullopt;
            },
            .read = read_regular_file};
}

} // namespace headgate::config
