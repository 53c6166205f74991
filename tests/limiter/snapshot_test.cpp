#include "limiter/memory/snapshot.hpp"

#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <fstream>
#include <iterator>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

using namespace headgate::limiter;
using namespace std::chrono_literals;

namespace {

const time_point start{microseconds{1'790'000'000'000'000}};

class temporary_folder
{
public:
    temporary_folder()
    {
        auto pattern = (std::filesystem::temp_directory_path() / "headgate-snapshot-XXXXXX").string();
        path = ::mkdtemp(pattern.data());
    }
    ~temporary_folder() { std::filesystem::remove_all(path); }
    std::filesystem::path path;
};

std::vector<rule> minute_and_day()
{
    rule minute{.name = "minute", .count = 60, .period = 60s, .capacity = 60, .initial = 60};
    rule day{.name = "day", .kind = algorithm::fixed_window, .count = 100, .period = 24h};
    return {minute, day};
}

verdict take(memory_store& store, const rule_group& group, std::string_view key, time_point now, std::uint64_t cost = 1)
{
    std::array<decision, max_decisions> decisions;
    const std::vector<std::uint64_t> costs(group.size(), cost);
    const part p{&group, key, costs};
    return store.take({&p, 1}, now, decisions);
}

std::string bytes_of(const std::filesystem::path& path)
{
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
void write_bytes(const std::filesystem::path& path, std::string_view bytes)
{
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

} // namespace

TEST_CASE("snapshot: a restart keeps what was used, and the time while the process was down counts")
{
    temporary_folder folder;
    const auto file = folder.path / "state";
    {
        memory_store store(1000);
        const auto group = store.define("api", minute_and_day(), start);
        CHECK(take(store, *group, "alice", start, 60).admitted);
        CHECK(take(store, *group, "bob", start, 10).admitted);
        CHECK(store.block("api", "mallory", start + 1h, start));
        const auto saved = save_snapshot(store, file, start);
        CHECK(saved.error == "");
        CHECK(saved.keys == 3);
        CHECK(saved.bytes == std::filesystem::file_size(file));
    }
    memory_store store(1000);
    const auto group = store.define("api", minute_and_day(), start);
    const auto loaded = load_snapshot(store, file, start + 10s);
    CHECK(loaded.error == "");
    CHECK(loaded.keys == 3);
    CHECK(loaded.written_at == start);
    // After ten seconds alice has ten tokens again, and her day has counted all sixty.
    CHECK(take(store, *group, "alice", start + 10s, 10).admitted);
    const auto refused = take(store, *group, "alice", start + 10s);
    CHECK_FALSE(refused.admitted);
    CHECK(refused.retry_after == 1s);
    CHECK_FALSE(take(store, *group, "alice", start + 70s, 31).admitted);
    CHECK(take(store, *group, "alice", start + 70s, 30).admitted);
    CHECK(take(store, *group, "mallory", start + 10s).blocked);
}

TEST_CASE("snapshot: counters are converted when the rules changed while the process was down")
{
    temporary_folder folder;
    const auto file = folder.path / "state";
    {
        memory_store store(1000);
        auto rules = minute_and_day();
        rules[0].count = rules[0].capacity = rules[0].initial = 100;
        const auto group = store.define("api", rules, start);
        const auto gone = store.define("old", minute_and_day(), start);
        CHECK(take(store, *group, "alice", start, 80).admitted);
        CHECK(take(store, *gone, "alice", start, 1).admitted);
        CHECK(save_snapshot(store, file, start).error == "");
    }
    memory_store store(1000);
    auto rules = minute_and_day();
    rules[0].count = rules[0].capacity = rules[0].initial = 200;
    rules[1].count = 1000;
    const auto group = store.define("api", rules, start);
    const auto loaded = load_snapshot(store, file, start);
    CHECK(loaded.keys == 1);
    CHECK(loaded.outlived == 1);
    CHECK_FALSE(take(store, *group, "alice", start, 121).admitted);
    CHECK(take(store, *group, "alice", start, 120).admitted);
}

TEST_CASE("snapshot: sliding logs survive, requests in flight do not")
{
    temporary_folder folder;
    const auto file = folder.path / "state";
    const rule log{.name = "log", .kind = algorithm::sliding_log, .count = 20, .period = 60s};
    const rule busy{.name = "busy", .kind = algorithm::concurrency, .count = 30};
    {
        memory_store store(1000);
        const auto group = store.define("api", {log, busy}, start);
        for (int i = 0; i < 20; ++i)
            CHECK(take(store, *group, "alice", start + microseconds{i}).admitted);
        CHECK(save_snapshot(store, file, start).error == "");
    }
    memory_store store(1000);
    const auto group = store.define("api", {log, busy}, start);
    CHECK(load_snapshot(store, file, start + 1s).keys == 1);
    CHECK_FALSE(take(store, *group, "alice", start + 60s - 1us).admitted);
    CHECK(take(store, *group, "alice", start + 60s).admitted);
    const auto report = store.inspect("api", "alice", start + 60s);
    REQUIRE(report);
    CHECK(report->decisions[1].remaining == 29);
}

TEST_CASE("snapshot: a missing file is no error; a truncated or altered file is reported and ignored, at every byte")
{
    temporary_folder folder;
    const auto file = folder.path / "state";
    memory_store empty(1000);
    empty.define("api", minute_and_day(), start);
    CHECK_FALSE(load_snapshot(empty, file, start).found);
    CHECK(load_snapshot(empty, folder.path, start).error != "");

    memory_store store(1000);
    const auto group = store.define("api", minute_and_day(), start);
    for (int i = 0; i < 5; ++i)
        take(store, *group, "user-" + std::to_string(i), start);
    REQUIRE(save_snapshot(store, file, start).error == "");
    const auto whole = bytes_of(file);
    for (std::size_t n = 0; n < whole.size(); ++n) {
        write_bytes(file, whole.substr(0, n));
        const auto cut = load_snapshot(empty, file, start);
        CHECK_MESSAGE(cut.error != "", "cut at ", n);
        auto altered = whole;
        altered[n] = static_cast<char>(altered[n] ^ 0x40);
        write_bytes(file, altered);
        const auto bad = load_snapshot(empty, file, start);
        CHECK_MESSAGE(bad.error != "", "altered at ", n);
        CHECK(cut.keys + bad.keys == 0);
    }
    CHECK(empty.stats().keys == 0);
}

TEST_CASE("snapshot: saving to a missing directory returns an error with its path")
{
    memory_store store(10);
    const auto saved = save_snapshot(store, "/nonexistent-folder/state", start);
    CHECK(saved.error.find("/nonexistent-folder/state") != std::string::npos);
    CHECK(saved.error.find("No such file") != std::string::npos);
}

TEST_CASE("snapshot: kill -9 during a save leaves the previous snapshot or the new one")
{
    temporary_folder folder;
    const auto file = folder.path / "state";
    memory_store store(20'000);
    const auto group = store.define("api", minute_and_day(), start);
    for (int i = 0; i < 5'000; ++i)
        take(store, *group, "user-" + std::to_string(i), start);
    REQUIRE(save_snapshot(store, file, start).error == "");

    std::mt19937 random(42);
    std::uint64_t newest = 0;
    constexpr int rounds = 60;
    for (int round = 0; round < rounds; ++round) {
        int started[2];
        REQUIRE(::pipe(started) == 0);
        const auto child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            // Saves repeatedly, each time with a later date, until it is killed.
            for (int i = 1;; ++i) {
                if (::write(started[1], "x", 1) != 1)
                    ::_exit(1);
                save_snapshot(store, file, start + std::chrono::seconds{round * 1000 + i});
            }
        }
        std::array<char, 1> byte;
        REQUIRE(::read(started[0], byte.data(), 1) == 1);
        for (volatile unsigned long spin = random() % 3'000'000; spin > 0;)
            spin = spin - 1;
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        ::close(started[0]);
        ::close(started[1]);

        memory_store fresh(20'000);
        fresh.define("api", minute_and_day(), start);
        const auto loaded = load_snapshot(fresh, file, start);
        CHECK(loaded.error == "");
        CHECK(loaded.keys == 5'000);
        const auto date = static_cast<std::uint64_t>(loaded.written_at.time_since_epoch().count());
        CHECK(date >= newest); // never older than the one before
        newest = date;
    }
}

TEST_CASE("snapshot: the keeper saves once more when it is destroyed")
{
    temporary_folder folder;
    const auto file = folder.path / "state";
    memory_store store(1000);
    const auto group = store.define("api", minute_and_day(), start);
    take(store, *group, "alice", start);
    std::uint64_t reported = 0;
    {
        snapshot_keeper keeper(
            store, file, 1h, [] { return start; }, [&](const snapshot_saved& saved) { reported += saved.keys; });
    }
    CHECK(reported == 1);
    CHECK(std::filesystem::exists(file));
}
