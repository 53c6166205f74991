// Files that cannot be read and files that need too much memory are refused quickly, with a message.
#include "config/yaml_tree.hpp"
#include "tests/config/support.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace headgate::config;
using namespace headgate::config::testing;
namespace fs = std::filesystem;

namespace {

struct scratch_folder
{
    fs::path path;
    scratch_folder()
    {
        std::string name = (fs::temp_directory_path() / "headgate-config-XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    ~scratch_folder() { fs::remove_all(path); }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;
};

std::string only_message(const load_result& result)
{
    REQUIRE(result.problems.size() == 1);
    return result.problems[0].message;
}

} // namespace

TEST_CASE("a missing file, a directory and a device each have their own message, without a position")
{
    CHECK(joined(load_file("no/such.yaml").problems) == "no/such.yaml: there is no such file\n");
    CHECK(joined(load_file("tests").problems) == "tests: this is a directory; name a file in it\n");
    CHECK(joined(load_file("/dev/null").problems) == "/dev/null: this is not a regular file\n");
}

TEST_CASE("a pipe is refused at once instead of waited for")
{
    scratch_folder scratch;
    const auto pipe = scratch.path / "pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(only_message(load_file(pipe)) == "this is not a regular file");
}

TEST_CASE("the message for an unreadable file has the reason")
{
    scratch_folder scratch;
    // Even root cannot open a link to itself.
    const auto loop = scratch.path / "loop.yaml";
    fs::create_symlink(loop, loop);
    CHECK(only_message(load_file(loop)) == "the file cannot be read: Too many levels of symbolic links");
    CHECK(only_message(load_file("gateway.yaml/x")) == "the file cannot be read: Not a directory");

    if (::geteuid() == 0) {
        MESSAGE("running as root: permission bits do not bind, so that half is not tried");
        return;
    }
    const auto file = scratch.path / "closed.yaml";
    std::ofstream(file) << "workers: 1\n";
    fs::permissions(file, fs::perms::none);
    CHECK(only_message(load_file(file)) == "the file cannot be read: Permission denied");
}

TEST_CASE("a file of 50 MB is refused without being read")
{
    scratch_folder scratch;
    const auto file = scratch.path / "large.yaml";
    std::ofstream(file) << "workers: 1\n";
    fs::resize_file(file, 50'000'000);
    CHECK(only_message(load_file(file)) == "the file is larger than 16384 KiB, the maximum");
}

TEST_CASE("anchors that expand exponentially are refused quickly")
{
    std::string bomb = "a0: &a0 [ x, x, x, x, x, x, x, x, x, x ]\n";
    for (int i = 1; i < 30; ++i) {
        const auto n = std::to_string(i), m = std::to_string(i - 1);
        bomb += "a" + n + ": &a" + n + " [";
        for (int j = 0; j < 10; ++j)
            bomb += (j ? ", *a" : " *a") + m;
        bomb += " ]\n";
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto result = load(bomb);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
    CHECK(only_message(result) == "more than 1,000,000 nodes after the aliases are expanded; reduce them");
}

TEST_CASE("100 levels deep is refused, in flow and in block style")
{
    const std::string message = "more than 64 levels of nesting; reduce them";
    CHECK(only_message(load("a: " + std::string(100, '[') + std::string(100, ']'))) == message);
    std::string block;
    for (std::size_t i = 0; i < 100; ++i)
        block += std::string(i, ' ') + "a:\n";
    CHECK(only_message(load(block)) == message);
    CHECK(!only_message(load(std::string(100'000, '['))).empty());
}

TEST_CASE("more than a million nodes are refused")
{
    std::string wide = "workers: [";
    for (int i = 0; i < 1'000'001; ++i)
        wide += "1,";
    CHECK(only_message(load(wide + "1]")).starts_with("more than 1,000,000 nodes"));
}

TEST_CASE("an alias may stand for a value, and problems point at the anchor")
{
    const auto yaml = "listeners:\n  - address: &a 127.0.0.1:0\n  - address: *a\n"
                      "upstreams: { demo: &d { echo: true }, two: *d }\n"
                      "routes: [ { name: a, match: { path: /a }, upstream: demo }, { name: b, upstream: two } ]\n";
    const auto result = load(yaml);
    CHECK(joined(result.problems) == "");
    REQUIRE(result.config);
    CHECK(result.config->upstreams.at("two").echo);
}

TEST_CASE("invalid UTF-8 is found at its first byte")
{
    const auto npos = std::string::npos;
    CHECK(first_bad_byte("plain") == npos);
    CHECK(first_bad_byte("é € 😀") == npos);
    CHECK(first_bad_byte("a\xC0\x80") == 1);        // overlong
    CHECK(first_bad_byte("\xED\xA0\x80") == 0);     // surrogate
    CHECK(first_bad_byte("\xF4\x90\x80\x80") == 0); // beyond Unicode
    CHECK(first_bad_byte("ab\xE2\x82") == 2);       // cut off
    CHECK(first_bad_byte(std::string("a\0b", 3)) == 1);
}
