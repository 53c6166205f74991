#include "gateway/log/log_writer.hpp"
#include "tests/admin/support.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <set>
#include <sys/resource.h>

using namespace headgate;
using namespace headgate::tests;

namespace {

// Returns a full buffer of numbered lines of 64 bytes.
http::byte_buffer full_buffer(std::uint64_t& number)
{
    http::byte_buffer lines;
    while (lines.size() < log_writer::buffer_size) {
        const auto text = std::to_string(number++);
        lines.append(std::string(63 - text.size(), '.'), text, "\n");
    }
    return lines;
}
constexpr std::uint64_t lines_per_buffer = log_writer::buffer_size / 64;

} // namespace

TEST_CASE("the lines handed over are written, in order, before stop returns")
{
    temporary_folder folder;
    const auto path = folder.file("log");
    std::uint64_t number = 0;
    std::string wanted;
    {
        log_writer writer;
        writer.use(path);
        for (int i = 0; i < 20; ++i) {
            auto lines = full_buffer(number);
            wanted += lines.view();
            REQUIRE(writer.take(lines));
            CHECK(lines.empty());
        }
        writer.stop();
        CHECK(writer.dropped() == 0);
    }
    CHECK(wait_for_lines(path, 0) == wanted);
}

TEST_CASE("the writer's thread has a lower priority than the workers', whose priority does not change")
{
    temporary_folder folder;
    log_writer writer;
    const auto threads = [] {
        std::set<unsigned long> found;
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
            found.insert(std::stoul(task.path().filename()));
        return found;
    };
    const auto usual = ::getpriority(PRIO_PROCESS, 0);
    const auto before = threads();
    writer.use(folder.file("log"));
    std::uint64_t number = 0;
    auto lines = full_buffer(number);
    REQUIRE(writer.take(lines));
    wait_for_lines(folder.file("log"), lines_per_buffer); // it runs
    std::size_t behind = 0;                               // of the new threads: a sanitizer may have started one too
    for (const auto thread : threads()) {
        const bool is_new = !before.contains(thread);
        behind += is_new && ::getpriority(PRIO_PROCESS, static_cast<id_t>(thread)) == std::min(usual + 10, 19);
    }
    CHECK(behind == 1);
    CHECK(::getpriority(PRIO_PROCESS, 0) == usual);
}

TEST_CASE("a reader that does not read loses lines and never blocks: a bounded queue, then counted drops")
{
    log_pipe pipe;
    log_writer writer;
    writer.use(pipe.path());
    std::uint64_t number = 0;
    std::uint64_t handed_over = 0;
    for (;;) {
        auto lines = full_buffer(number);
        if (!writer.take(lines)) {
            writer.drop(lines.view(), "test");
            break;
        }
        handed_over += lines_per_buffer;
        REQUIRE(handed_over < 1000 * lines_per_buffer);
    }
    CHECK(handed_over >= log_writer::most_pending * lines_per_buffer);
    // The pipe holds one buffer, and one is being written.
    CHECK(handed_over <= (log_writer::most_pending + 3) * lines_per_buffer);
    CHECK(writer.dropped() == lines_per_buffer);

    SUBCASE("a buffer that is not full is not queued in a long queue and stays with its worker")
    {
        http::byte_buffer few;
        few.append("one line\n");
        CHECK_FALSE(writer.take(few));
        CHECK(few.view() == "one line\n");
    }
    SUBCASE("when the reader comes back, all kept lines arrive, in order")
    {
        for (std::uint64_t i = 0; i < handed_over; ++i) {
            const auto line = pipe.next_line();
            if (line.size() != 63 || !line.ends_with(std::to_string(i)))
                FAIL("line ", i, " is: ", line);
        }
        CHECK(writer.dropped() == lines_per_buffer);
    }
    SUBCASE("stop gives up after a moment and counts the lost lines")
    {
        const auto began = std::chrono::steady_clock::now();
        writer.stop();
        CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds{30}); // stop has ended
        const auto arrived = static_cast<std::uint64_t>(std::ranges::count(pipe.take_what_is_there(), '\n'));
        CHECK(arrived + writer.dropped() == handed_over + lines_per_buffer);
    }
}

TEST_CASE("a full disk: everything is dropped and counted, nothing fails")
{
    log_writer writer;
    writer.use("/dev/full");
    std::uint64_t number = 0;
    auto lines = full_buffer(number);
    REQUIRE(writer.take(lines));
    writer.stop();
    CHECK(writer.dropped() == lines_per_buffer);
}

TEST_CASE("a pipe whose reader has gone is an error of the log and does not end the process")
{
    log_writer writer;
    {
        log_pipe pipe;
        writer.use(pipe.path());
        http::byte_buffer line;
        line.append("first\n");
        REQUIRE(writer.take(line));
        CHECK(pipe.next_line() == "first");
    }
    http::byte_buffer line;
    line.append("second\nthird\n");
    REQUIRE(writer.take(line));
    writer.stop();
    CHECK(writer.dropped() == 2);
}

TEST_CASE("reopen writes to the same name after the file was moved away")
{
    temporary_folder folder;
    const auto path = folder.file("log");
    log_writer writer;
    writer.use(path);
    http::byte_buffer line;
    line.append("before\n");
    REQUIRE(writer.take(line));
    CHECK(wait_for_lines(path, 1) == "before\n");
    std::filesystem::rename(path, path + ".1");
    writer.reopen();
    line.append("after\n");
    REQUIRE(writer.take(line));
    CHECK(wait_for_lines(path, 1) == "after\n");
    CHECK(wait_for_lines(path + ".1", 1) == "before\n");

    SUBCASE("it keeps the old file when the name cannot be opened")
    {
        std::filesystem::rename(path, path + ".2");
        std::filesystem::create_directory(path);
        writer.reopen();
        line.append("still here\n");
        REQUIRE(writer.take(line));
        CHECK(wait_for_lines(path + ".2", 2) == "after\nstill here\n");
    }
}

TEST_CASE("a file that cannot be opened is an error at once, and the previous file is kept")
{
    temporary_folder folder;
    log_writer writer;
    CHECK_THROWS_WITH_AS(writer.use(folder.file("no/such/folder")), doctest::Contains("cannot open the access log"),
                         std::system_error);
    writer.use(folder.file("log"));
    CHECK_THROWS_AS(writer.use(folder.file("no/such/folder")), std::system_error);
    http::byte_buffer line;
    line.append("kept\n");
    REQUIRE(writer.take(line));
    CHECK(wait_for_lines(folder.file("log"), 1) == "kept\n");
    CHECK((std::filesystem::status(folder.file("log")).permissions() & std::filesystem::perms::others_all) ==
          std::filesystem::perms::none);
}
