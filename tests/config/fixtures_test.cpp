// Every file under tests/data/config/bad contains one mistake and the exact message for it, in `# expect: ` lines at
// its end or, when it cannot contain a comment, in a file beside it. Every file under good loads without problems.
#include "tests/config/support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

using namespace headgate::config;
using namespace headgate::config::testing;
namespace fs = std::filesystem;

namespace {

const std::string folder = "tests/data/config/";

std::vector<fs::path> yaml_files(const std::string& under)
{
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(folder + under))
        if (entry.path().extension() == ".yaml")
            out.push_back(entry.path());
    std::sort(out.begin(), out.end());
    return out;
}

std::vector<std::string> expected_lines(const fs::path& file)
{
    const bool beside = fs::exists(file.string() + ".expect");
    const std::string mark = beside ? "" : "# expect: ";
    std::istringstream in(read_text(beside ? file.string() + ".expect" : file.string()));
    std::vector<std::string> out;
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(mark))
            out.push_back(line.substr(mark.size()));
    return out;
}

std::vector<std::string> without_folder(std::vector<std::string> all)
{
    for (auto& line : all)
        for (auto at = line.find(folder + "bad/"); at != std::string::npos; at = line.find(folder + "bad/"))
            line.erase(at, (folder + "bad/").size());
    return all;
}

} // namespace

TEST_CASE("every bad fixture gives exactly its messages")
{
    const auto files = yaml_files("bad");
    CHECK(files.size() >= 45);
    for (const auto& file : files) {
        CAPTURE(file.string());
        const auto expected = expected_lines(file);
        CHECK(!expected.empty());
        const auto result = load_file(file, test_environment());
        const auto found = without_folder(lines(result.problems));
        CHECK(found == expected);
        CHECK(result.config.has_value() == !has_errors(result.problems));
        // No message contains a secret.
        for (const auto& line : found)
            CHECK(line.find("s3cr3t-not-shown") == std::string::npos);
    }
}

TEST_CASE("every good fixture loads without problems")
{
    for (const auto& file : yaml_files("good")) {
        CAPTURE(file.string());
        const auto result = load_file(file, test_environment());
        CHECK(joined(result.problems) == "");
        CHECK(result.config.has_value());
    }
}

TEST_CASE("mistakes of different kinds are all reported at once, in the order of the file")
{
    const auto result = load_file(folder + "bad/many-mistakes.yaml", test_environment());
    CHECK(result.problems.size() == 6);
    CHECK(std::is_sorted(result.problems.begin(), result.problems.end(),
                         [](const problem& a, const problem& b) { return a.line < b.line; }));
}
