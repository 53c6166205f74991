// The start of a gateway: addresses that are taken, paths that cannot be used.
#include "gateway/load_configuration.hpp"
#include "tests/admin/support.hpp"
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>

#include <barrier>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>

using namespace headgate::tests;

namespace {

std::string echo_on(const std::string& address, const std::string& store_options = "")
{
    return "workers: 2\nlisteners: [ { address: " + address + " } ]\nstores: { local: { type: memory, max_keys: 1000" +
           store_options + " } }\nupstreams: { up: { echo: true } }\nroutes: [ { name: all, upstream: up } ]\n";
}

std::string local(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

} // namespace

TEST_CASE("start: a second gateway on an address is refused with a sentence; the first one goes on")
{
    running_gateway first(echo_on("127.0.0.1:0"));
    const auto sentence =
        "cannot listen on " + local(first.port()) + ": another process listens there; stop it, or choose another port";
    CHECK_THROWS_WITH_AS(running_gateway(echo_on(local(first.port()))), doctest::Contains(sentence.c_str()),
                         std::system_error);
    const auto everywhere = "0.0.0.0:" + std::to_string(first.port());
    CHECK_THROWS_WITH_AS(running_gateway(echo_on(everywhere)), doctest::Contains("another process listens there"),
                         std::system_error);
    for (int i = 0; i < 10; ++i)
        CHECK(status_of(first.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")) == 200);
}

TEST_CASE("start: a gateway that is refused does not write over the snapshot of the one that runs")
{
    const temporary_folder folder;
    const auto snapshot = ", snapshot: { path: " + folder.file("counters") + ", interval: 1h }";
    running_gateway first(echo_on("127.0.0.1:0", snapshot));
    CHECK_THROWS(running_gateway(echo_on(local(first.port()), snapshot)));
    CHECK(!std::filesystem::exists(folder.file("counters")));
}

TEST_CASE("start: of two gateways that start at once on one address exactly one starts")
{
    std::uint16_t port = 0;
    {
        const running_gateway free_port(echo_on("127.0.0.1:0"));
        port = free_port.port();
    }
    for (int round = 0; round < 20; ++round) {
        CAPTURE(round);
        std::atomic<int> started{0};
        std::barrier both(2);
        const auto start = [&] {
            both.arrive_and_wait();
            std::optional<running_gateway> gateway;
            try {
                gateway.emplace(echo_on(local(port)));
                ++started;
            } catch (const std::system_error&) {
            }
            both.arrive_and_wait();
        };
        std::thread one(start), other(start);
        one.join();
        other.join();
        CHECK(started == 1);
    }
}

TEST_CASE("start: an address can be used again right after a stop, with connections in TIME_WAIT")
{
    std::uint16_t port = 0;
    {
        const running_gateway before(echo_on("127.0.0.1:0"));
        port = before.port();
        for (int i = 0; i < 3; ++i) {
            auto client = before.connect();
            client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            client.read_all(); // the gateway closes first
        }
    }
    const running_gateway after(echo_on(local(port)));
    CHECK(status_of(after.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")) == 200);
}

TEST_CASE("start: a snapshot path that leads to something other than a regular file is refused")
{
    const temporary_folder folder;
    std::filesystem::create_directory(folder.file("directory"));
    std::filesystem::create_symlink("/dev/null", folder.file("device"));
    REQUIRE(::mkfifo(folder.file("fifo").c_str(), 0600) == 0);
    std::filesystem::create_symlink(folder.file("fifo"), folder.file("link"));
    std::ofstream(folder.file("regular")) << "anything";
    std::filesystem::create_symlink(folder.file("regular"), folder.file("good-link"));
    std::filesystem::create_symlink(folder.file("nothing"), folder.file("dangling"));

    const auto complaint_about = [&](const std::string& name) {
        const auto file = folder.file("gateway.yaml");
        std::ofstream(file) << echo_on("127.0.0.1:0", ", snapshot: { path: " + folder.file(name) + " }");
        for (const auto& problem : headgate::load_configuration(file).problems) {
            if (problem.level == headgate::config::severity::error)
                return to_string(problem);
        }
        return std::string{};
    };
    for (const char* refused : {"directory", "device", "fifo", "link"}) {
        CAPTURE(refused);
        CHECK(complaint_about(refused).find("gateway.yaml:3:") != std::string::npos);
        CHECK(complaint_about(refused).find("stores.local.snapshot.path: " + folder.file(refused) +
                                            " is not a regular file") != std::string::npos);
    }
    for (const char* accepted : {"regular", "good-link", "dangling", "nothing", "no/such/folder/counters"}) {
        CAPTURE(accepted);
        CHECK(complaint_about(accepted) == "");
    }
}

TEST_CASE("start: a file that a relative path found in the working directory is not left behind")
{
    const temporary_folder folder;
    // From the working directory `written` leads to `counters`; from the folder of the configuration it does not.
    std::string deep = "deep";
    for (int i = 0; i < 30; ++i)
        deep += "/deep";
    std::filesystem::create_directories(folder.file(deep));
    const auto written = std::filesystem::relative(folder.file("counters")).string();
    const auto file = folder.file(deep + "/gateway.yaml");
    const auto now = (std::filesystem::path(file).parent_path() / written).lexically_normal().string();
    std::ofstream(file) << echo_on("127.0.0.1:0", ", snapshot: { path: " + written + " }");
    const auto problems = [&] {
        std::string all;
        for (const auto& problem : headgate::load_configuration(file).problems)
            all += to_string(problem) + "\n";
        return all;
    };
    const auto complaint = file +
                           ":3:68: stores.local.snapshot.path: a relative path starts at the folder of the file "
                           "that contains it, and the file is not there; there is one in the working "
                           "directory: move " +
                           folder.file("counters") + " to " + now + ", or write the whole path\n";
    const std::string unused = file + ":3:11: warning: stores.local: this is not used; remove it, or refer to it\n";

    CHECK(problems() == unused); // neither exists: a first start
    std::ofstream(folder.file("counters")) << "of an earlier version";
    CHECK(problems() == unused + complaint);
    std::filesystem::create_directories(std::filesystem::path(now).parent_path());
    std::ofstream(now) << "moved";
    CHECK(problems() == unused);
}
