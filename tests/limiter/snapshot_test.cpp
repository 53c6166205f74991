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

TEST_CASE("snapshot: a file from a clock that was ahead refuses no longer than the rule needs")
{
    temporary_folder folder;
    const auto file = folder.path / "state";
    constexpr auto ahead = 24h * 10;
    const time_point noon{std::chrono::floor<std::chrono::days>(start) + 12h};
    auto berlin_day = rule{.name = "r", .kind = algorithm::fixed_window, .count = 3, .period = 24h};
    berlin_day.calendar = calendar_unit::day;
    berlin_day.zone = time_zone::parse(bytes_of("/usr/share/zoneinfo/Europe/Berlin"));
    REQUIRE(berlin_day.zone);
    struct limited
    {
        rule limit;
        microseconds wait; // after three requests
    };
    const std::vector<limited> all{
        {{.name = "r", .count = 1, .period = 10s, .capacity = 3, .initial = 3}, 10s},
        {{.name = "r", .kind = algorithm::fixed_window, .count = 3, .period = 1h}, 1h},
        {{.name = "r", .kind = algorithm::fixed_window, .count = 3, .period = 90s, .align = window_align::first}, 90s},
        {{.name = "r", .kind = algorithm::sliding_window, .count = 3, .period = 60s}, 80s},
        {{.name = "r", .kind = algorithm::sliding_log, .count = 3, .period = 60s}, 60s},
        {berlin_day, 10h}};
    for (const auto& each : all) {
        CAPTURE(static_cast<int>(each.limit.kind));
        {
            memory_store store(1000);
            const auto group = store.define("api", {each.limit}, noon);
            CHECK(take(store, *group, "alice", noon + ahead, 3).admitted);
            CHECK(store.block("api", "mallory", noon + ahead + 1h, noon + ahead));
            CHECK(save_snapshot(store, file, noon + ahead).error == "");
        }
        memory_store store(1000);
        const auto group = store.define("api", {each.limit}, noon);
        CHECK(load_snapshot(store, file, noon).keys == 2);
        const auto refused = take(store, *group, "alice", noon);
        CHECK_FALSE(refused.admitted);
        CHECK(refused.retry_after == each.wait);
        CHECK_FALSE(take(store, *group, "alice", noon + each.wait - 1us).admitted);
        CHECK(take(store, *group, "alice", noon + each.wait).admitted);
        memory_store blocking(1000);
        const auto same = blocking.define("api", {each.limit}, noon);
        CHECK(load_snapshot(blocking, file, noon).keys == 2);
        CHECK(take(blocking, *same, "mallory", noon + 1h - 1us).blocked);
        CHECK_FALSE(take(blocking, *same, "mallory", noon + 1h).blocked);
    }
}

TEST_CASE("snapshot: debts stay owed")
{
    temporary_folder folder;
    const auto file = folder.path / "state";
    const rule slow{.name = "r", .count = 1, .period = 1s, .capacity = 10, .initial = 10};
    for (const auto written : {start, start + 24h * 10}) {
        {
            memory_store store(1000);
            const auto group = store.define("api", {slow}, written);
            CHECK(take(store, *group, "alice", written, 10).admitted);
            const std::vector<std::uint64_t> costs{10}, actual{100};
            store.correct({group.get(), "alice", costs}, actual, written, written);
            CHECK(save_snapshot(store, file, written).error == "");
        }
        memory_store store(1000);
        const auto group = store.define("api", {slow}, start);
        CHECK(load_snapshot(store, file, start).keys == 1);
        CHECK(take(store, *group, "alice", start).retry_after == 91s);
    }
}

TEST_CASE("snapshot: its times are those of the wall clock")
{
    temporary_folder folder;
    const auto file = folder.path / "state";
    const rule hour{.name = "hour", .kind = algorithm::fixed_window, .count = 3, .period = 1h};
    const rule minute{.name = "minute", .count = 1, .period = 60s, .capacity = 3, .initial = 3};
    const time_point noon{std::chrono::floor<std::chrono::hours>(start)};
    {
        // The wall clock was wrong at the start of the gateway, and was set back by ten days and a half hour.
        memory_store store(1000);
        const auto began = noon + 24h * 10 + 30min;
        const auto group = store.define("api", {hour, minute}, began);
        store.follow_wall(noon - began, began);
        CHECK(take(store, *group, "alice", began, 3).admitted);
        const auto saved = save_snapshot(store, file, {began, noon - began});
        CHECK(saved.error == "");
    }
    memory_store store(1000);
    const auto group = store.define("api", {hour, minute}, noon);
    const auto loaded = load_snapshot(store, file, noon + 5s);
    CHECK(loaded.written_at == noon);
    std::array<decision, max_decisions> decisions;
    const part p{group.get(), "alice", {}};
    CHECK_FALSE(store.take({&p, 1}, noon + 5s, decisions).admitted);
    CHECK(decisions[0].retry_after == 1h - 5s);
    CHECK(decisions[1].retry_after == 55s);
}

TEST_CASE("memory store: windows of the calendar follow the wall clock, other limits do not")
{
    const rule hour{.name = "hour", .kind = algorithm::fixed_window, .count = 3, .period = 1h};
    const rule rate{.name = "rate", .count = 1, .period = 10min, .capacity = 3, .initial = 3};
    const time_point noon{std::chrono::floor<std::chrono::hours>(start)};
    const auto at = noon + 10min;
    const auto wait = [&](std::vector<rule> rules, microseconds step) {
        memory_store store(1); // the second key has only overflow counters
        const auto group = store.define("api", std::move(rules), noon);
        CHECK(take(store, *group, "alice", at, 3).admitted);
        CHECK(take(store, *group, "bob", at, 3).admitted);
        store.follow_wall(step, at);
        std::array<decision, max_decisions> decisions;
        const part alice{group.get(), "alice", {}}, bob{group.get(), "bob", {}};
        const auto of_bob = store.look({&bob, 1}, at, decisions).retry_after;
        const auto got = store.take({&alice, 1}, at, decisions);
        if (!got.admitted)
            CHECK(of_bob == got.retry_after);
        else
            CHECK(decisions[0].reset_after <= 1h);
        return got.retry_after;
    };
    CHECK(wait({hour}, 0us) == 50min);
    CHECK(wait({hour}, -30min) == 20min); // 11:40: what was used counts in the hour that now runs
    CHECK(wait({hour}, 20min) == 30min);
    CHECK(wait({hour}, 50min) == never); // 13:00: a new window
    for (const auto step : {microseconds{-24h}, microseconds{24h}})
        CHECK(wait({rate}, step) == 10min);
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
