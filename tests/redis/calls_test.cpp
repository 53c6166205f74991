// Calls of the scripts, case by case: their size, the keys that they leave, and unexpected values.
#include "limiter/redis/client/command.hpp"
#include "limiter/redis/client/error_class.hpp"
#include "tests/redis/redis_under_test.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <random>
#include <sstream>

using namespace headgate::testing;
using redis::call_status;

namespace {

const auto noon = start + 5h;

rule minute(std::uint64_t n) { return named("minute", token_bucket(n, 60s, n)); }
rule calendar_day(std::uint64_t n)
{
    auto r = named("day", fixed_window(n, 24h));
    r.calendar = calendar_unit::day;
    return r;
}
const std::vector<rule> all_kinds{minute(60),
                                  named("hour", fixed_window(500, 1h)),
                                  calendar_day(1'000),
                                  named("first", fixed_window(500, 1h, window_align::first)),
                                  named("sliding", sliding_window(500, 60s)),
                                  named("log", sliding_log(50, 60s)),
                                  named("open", concurrency(50))};

// One take by the real script and the real clock.
struct real_call
{
    explicit real_call(std::vector<rule> rules) : group(std::move(rules)) { connection.call({"FLUSHALL"}); }

    std::string take(redis::call_by by)
    {
        command.clear();
        append_take(command, {&part, 1}, how, by);
        const auto reply = connection.call(command);
        return {reply->str, reply->len};
    }
    redis::call_answer read(std::string_view reply) { return read_take(reply, {&part, 1}, how, result, decisions); }

    redis::detached_rules group;
    redis_connection connection{shared_server()};
    redis::chain_part part{&group.packed(), "hg:1:{api:user:12345678}", {}};
    redis::take_options how{.guess = std::chrono::floor<microseconds>(std::chrono::system_clock::now())};
    std::string command;
    verdict result;
    std::array<decision, max_decisions> decisions;
};

std::string file(const std::string& name)
{
    std::ifstream in(name);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

} // namespace

TEST_CASE("redis calls: the embedded scripts equal the files")
{
    const auto rewind = file("limiter/redis/lua/rewind.lua");
    CHECK(redis::take_script().text == rewind + file("limiter/redis/lua/take.lua"));
    CHECK(redis::take_each_script().text == file("limiter/redis/lua/take_each.lua"));
    CHECK(redis::correct_script().text == rewind + file("limiter/redis/lua/correct.lua"));
    CHECK(redis::replace_script().text == file("limiter/redis/lua/replace.lua"));
    redis_connection c(shared_server());
    for (const auto* s :
         {&redis::take_script(), &redis::take_each_script(), &redis::correct_script(), &redis::replace_script()})
        CHECK(c.text({"SCRIPT", "LOAD", s->text}) == s->sha1);
}

TEST_CASE("redis calls: two rules on one key take fewer than 250 bytes, call and reply together")
{
    for (const auto& day : {calendar_day(10'000), named("day", fixed_window(10'000, 24h))}) {
        real_call c({named("minute", token_bucket(61, 60s, 61)), day});
        REQUIRE(c.part.key.size() == 24);
        c.take(redis::call_by::text);
        std::string key, argument;
        redis::append_word(key, c.part.key);
        write_each_argument(argument, c.part, c.how);
        for (const auto by : {redis::call_by::text, redis::call_by::digest}) {
            c.command.clear();
            redis::append_take_each(c.command, 1, key, argument, by);
            const auto reply = c.connection.call(c.command); // the key exists now: the reply has its whole state
            REQUIRE(reply->elements == 1);
            const std::string result(reply->element[0]->str, reply->element[0]->len);
            std::string framed = "*1\r\n";
            redis::append_word(framed, result);
            CHECK(c.read(result).status == call_status::done);
            if (by == redis::call_by::digest)
                CHECK(c.command.size() + framed.size() < 250);
        }
    }
}

TEST_CASE("redis calls: two rules on each of many keys take fewer than 100 bytes per key, call and reply together")
{
    real_call c({named("minute", token_bucket(61, 60s, 61)), calendar_day(10'000)});
    std::string words, argument;
    for (int i = 10; i < 26; ++i)
        redis::append_word(words, "hg:1:{api:user:123456" + std::to_string(i) + "}");
    write_each_argument(argument, c.part, c.how);
    append_take_each(c.command, 16, words, argument, redis::call_by::text);
    c.connection.call(c.command);
    c.command.clear();
    redis::append_take_each(c.command, 16, words, argument);
    const auto reply = c.connection.call(c.command); // the keys exist now: the reply has their whole states
    REQUIRE(reply->elements == 16);
    std::string framed = "*16\r\n";
    for (std::size_t i = 0; i < 16; ++i) {
        redis::append_word(framed, std::string_view(reply->element[i]->str, reply->element[i]->len));
        CHECK(c.read({reply->element[i]->str, reply->element[i]->len}).status == call_status::done);
    }
    CHECK((c.command.size() + framed.size()) / 16 < 100);
}

TEST_CASE("redis calls: many keys in one call are decided independently, and one that occurs twice is decided twice")
{
    redis_connection connection(shared_server());
    connection.call({"FLUSHALL"});
    connection.call({"SET", "foreign", "not ours"});
    connection.call({"LPUSH", "list", "not ours"});
    const redis::detached_rules rules({named("hour", fixed_window(2, 1h)), named("bucket", token_bucket(9, 1h, 9))});
    const redis::chain_part part{&rules.packed(), "", {}};
    std::string words, argument, command;
    for (const auto* key : {"a", "foreign", "a", "b", "list", "a"})
        redis::append_word(words, key);
    write_each_argument(argument, part, {});
    append_take_each(command, 6, words, argument, redis::call_by::text);
    const auto result = connection.call(command);
    REQUIRE(result->elements == 6);
    verdict v;
    std::vector<decision> decisions(max_decisions);
    const auto text = [&](std::size_t i) { return std::string(result->element[i]->str, result->element[i]->len); };
    const auto read = [&](const std::string& reply) {
        const auto status = redis::read_take(reply, {&part, 1}, {}, v, decisions).status;
        return status != call_status::done ? -static_cast<int>(status) : v.admitted ? 1 : 0;
    };
    const auto unusual = -static_cast<int>(call_status::unusual);
    CHECK(read(text(0)) == 1);
    CHECK(decisions[0].remaining == 1);
    CHECK(read(text(1)) == unusual);
    CHECK(read(text(2)) == 1); // after the first
    CHECK(decisions[0].remaining == 0);
    CHECK(read(text(3)) == 1);
    CHECK(decisions[0].remaining == 1);
    CHECK(read(text(4)) == unusual);
    CHECK(read(text(5)) == 0); // after both
    CHECK(!decisions[0].admitted);
    CHECK(decisions[1].admitted);
    CHECK(decisions[1].remaining == 7);
    CHECK(connection.text({"GET", "foreign"}) == "not ours");

    const auto malformed = -static_cast<int>(call_status::malformed);
    for (const auto& whole : {text(1), text(2), text(5)}) {
        for (std::size_t n = 0; n < whole.size(); ++n)
            CHECK(read(whole.substr(0, n)) == malformed);
        CHECK(read(whole + '\0') == malformed);
    }
    auto lying = text(2);
    lying[0] = '\0';
    CHECK(read(lying) == -static_cast<int>(call_status::disagreement)); // the cost does fit
}

TEST_CASE("redis calls: with the real clock, and with the script's text when Redis does not know the script")
{
    real_call c(all_kinds);
    c.connection.call({"SCRIPT", "FLUSH"});
    CHECK(redis::classify(c.take(redis::call_by::digest)) == redis::error_class::no_script);
    const auto first = c.read(c.take(redis::call_by::text));
    const auto second = c.read(c.take(redis::call_by::digest));
    CHECK(first.status == call_status::done);
    CHECK(second.status == call_status::done);
    CHECK(c.result.admitted);
    CHECK(c.decisions[5].remaining == 48);
    CHECK(second.now > first.now);
    CHECK(std::chrono::abs(second.now - std::chrono::system_clock::now()) < 60s);
}

TEST_CASE("redis calls: the buffer keeps its capacity")
{
    real_call c({minute(60), calendar_day(100)});
    append_take(c.command, {&c.part, 1}, c.how);
    const auto capacity = c.command.capacity();
    const auto* const at = c.command.data();
    for (int i = 0; i < 100; ++i) {
        c.command.clear();
        append_take(c.command, {&c.part, 1}, c.how);
    }
    CHECK(c.command.capacity() == capacity);
    CHECK(c.command.data() == at);
}

TEST_CASE("redis calls: every key has a time to live after every kind of call")
{
    redis_under_test s;
    std::vector<rule> counting = all_kinds, starting = all_kinds;
    for (auto& r : counting)
        r.count_refused = true;
    starting[0].initial = 0;
    s.define("all", all_kinds, noon);
    s.define("counting", counting, noon);
    s.define("starting", starting, noon);
    const auto check = [&](const char* what) {
        CAPTURE(std::string(what));
        CHECK(s.key_for_ever() == "");
    };
    const chain both{{"all", "a"}, {"counting", "a"}};
    const auto result = s.take(both, noon);
    CHECK(result.admitted);
    check("take");
    s.take({{"counting", "a", {99, 999, 9999, 999, 999, 99, 99}}}, noon);
    check("refused, and counts");
    CHECK_FALSE(s.take({{"starting", "s"}}, noon).admitted);
    CHECK(s.value_of("starting", "s") != ""); // it refills from now on
    check("refused, and starts with less");
    s.give_back(both, result.charged_at, noon + 1s);
    check("give back");
    s.correct({"all", "a", {}}, {5, 5, 5, 5, 5, 5, 5}, noon, noon + 2s);
    s.correct({"all", "new", {}}, {5, 5, 5, 5, 5, 5, 5}, noon, noon + 2s);
    check("settle");
    s.renew("all", "a", noon + 3s);
    check("renew");
    s.grant("all", "a", 3, noon + 3s);
    s.reset("all", "a", noon + 3s);
    s.block("all", "b", noon + 1h, noon + 3s);
    s.unblock("all", "b", noon + 3s);
    check("verbs");
    s.define("all", {minute(7)}, noon);
    s.take({{"all", "a"}}, noon + 4s);
    CHECK(s.conversions > 0);
    check("conversion");
}

TEST_CASE("redis calls: the time to live is the time until the key has recovered, plus ten seconds")
{
    redis_under_test s;
    s.define("bucket", {minute(60)}, noon);
    s.define("log", {named("log", sliding_log(5, 90s))}, noon);
    s.define("century", {named("c", fixed_window(5, 24h * 365 * 100))}, noon);
    const auto check = [&](const std::string& group, std::chrono::milliseconds set) {
        s.take({{group, "k"}}, noon);
        const auto left = s.connection.number({"PTTL", s.key_of(group, "k")});
        CHECK(left <= set.count());
        CHECK(left > set.count() - 5'000);
    };
    check("bucket", 11'001ms);
    check("log", 100'001ms);
    check("century", 24h * 3'650); // at most ten years
}

TEST_CASE("redis calls: a time to live that is long enough is not changed, and never becomes too short")
{
    redis_under_test s;
    s.define("a", {named("bucket", token_bucket(1, 29s, 4)), named("window", fixed_window(9, 60s))}, noon);
    const auto left = [&] { return s.connection.number({"PTTL", s.key_of("a", "k")}); };
    const chain wanted{{"a", "k"}};
    s.take(wanted, noon);
    CHECK(left() > 65'000); // the window's 60 seconds plus ten
    s.take(wanted, noon + 20s);
    CHECK(left() > 65'000); // set again it would be 50: the window's remaining 40 seconds plus ten
    s.take(wanted, noon + 20s);
    CHECK(left() > 75'000); // the bucket now takes 67 seconds, longer than the window
    s.take(wanted, noon + 61s);
    CHECK(left() < 75'000); // a new window

    // The rule with the longest time decides, also if it is the second and only a little later than the first.
    s.define("c", {named("bucket", token_bucket(1, 50s, 4)), named("window", fixed_window(9, 60s))}, noon);
    s.take({{"c", "k"}}, noon);
    CHECK(s.connection.number({"PTTL", s.key_of("c", "k")}) > 69'000);

    // A current window without use guarantees no time to live.
    s.define("b", {named("window", fixed_window(9, 1h))}, noon);
    const chain other{{"b", "k"}};
    s.take(other, noon);
    auto value = s.value_of("b", "k");
    value.replace(value.size() - 7, 7, 7, '\0'); // used
    s.connection.call({"SET", s.key_of("b", "k"), value, "PX", "10000"});
    s.take(other, noon);
    CHECK(s.connection.number({"PTTL", s.key_of("b", "k")}) > 3'600'000);
}

TEST_CASE("redis calls: a look and a refusal write nothing")
{
    redis_under_test s;
    s.define("a", {minute(2), named("log", sliding_log(9, 60s))}, noon);
    s.look({{"a", "k"}}, noon);
    CHECK(s.value_of("a", "k") == "");
    s.takes(2, {{"a", "k"}}, noon);
    const auto before = s.value_of("a", "k");
    CHECK_FALSE(s.take({{"a", "k"}}, noon + 1s).admitted);
    s.look({{"a", "k"}}, noon + 2s);
    s.take({{"a", "k", {0, 0}}}, noon + 2s);
    CHECK(s.value_of("a", "k") == before);
}

TEST_CASE("redis calls: a foreign value is replaced, and clients are neither refused nor admitted for ever")
{
    redis_under_test s;
    s.define("a", {minute(2)}, noon);
    s.define("b", {minute(2), named("log", sliding_log(5, 60s)), named("open", concurrency(5))}, noon);
    for (const std::string group : {"a", "b"}) {
        const auto key = s.key_of(group, "k");
        const auto good = [&] {
            s.connection.call({"DEL", key});
            s.take({{group, "k"}}, noon);
            return s.value_of(group, "k");
        }();
        const std::string bad[] = {
            "x",         std::string(20, '\0'),           std::string(21, '\0'), good + "x",
            good + good, good.substr(0, good.size() - 1), good.substr(0, 21),    good.substr(0, 7)};
        for (const auto& value : bad) {
            CAPTURE(value.size());
            // A multiple of 7 bytes with a known fingerprint would be converted; no rules have the fingerprint 0.
            if (value == std::string(21, '\0'))
                continue;
            s.connection.call({"SET", key, value});
            CHECK(s.takes(5, {{group, "k"}}, noon) == 2);
            CHECK(s.key_for_ever() == "");
            s.connection.call({"SET", key, value});
            s.correct({group, "k", {}}, std::vector<std::uint64_t>(s.packed(group).size()), noon, noon);
            CHECK(s.takes(5, {{group, "k"}}, noon) == 2);
        }
        s.connection.call({"DEL", key});
        s.connection.call({"LPUSH", key, "x"});
        CHECK(s.takes(5, {{group, "k"}}, noon) == 2);
        CHECK(s.key_for_ever() == "");
    }
}

TEST_CASE("redis calls: requests in flight of a dead gateway are free after their lifetime, and renewing keeps them")
{
    redis_under_test s;
    s.define("a", {named("open", concurrency(5))}, noon);
    const chain k{{"a", "k"}};
    s.owner = {1, 60s};
    CHECK(s.takes(3, k, noon) == 3);
    s.owner = {2, 60s};
    CHECK(s.takes(9, k, noon + 30s) == 2);
    CHECK(s.look({{"a", "k", {0}}}, noon + 60s - 1us).decisions[0].remaining == 0);
    CHECK(s.look({{"a", "k", {0}}}, noon + 60s).decisions[0].remaining == 3);
    s.renew("a", "k", noon + 80s);
    CHECK(s.look({{"a", "k", {0}}}, noon + 100s).decisions[0].remaining == 3);
    s.owner = {3, 60s};
    s.give_back(k, noon, noon + 100s); // it has nothing in flight, and ends none of another holder
    CHECK(s.look({{"a", "k", {0}}}, noon + 100s).decisions[0].remaining == 3);
    s.owner = {2, 60s};
    s.give_back(k, noon, noon + 100s);
    CHECK(s.look({{"a", "k", {0}}}, noon + 100s).decisions[0].remaining == 4);
    CHECK(s.look({{"a", "k", {0}}}, noon + 160s).decisions[0].remaining == 5);
}

TEST_CASE("redis calls: calendar windows end at the calendar's boundaries, even if the guess of the time is wrong")
{
    redis_under_test s;
    s.wrong_guesses = true;
    auto month = named("month", fixed_window(3, 24h));
    month.calendar = calendar_unit::month;
    s.define("a", {calendar_day(2), month}, noon);
    const time_point evening = std::chrono::sys_days{std::chrono::year{2024} / 2 / 29} + 23h;
    const chain k{{"a", "k"}};
    CHECK(s.takes(5, k, evening) == 2);
    CHECK(s.take(k, evening).retry_after == 1h);
    CHECK(s.takes(5, k, evening + 1h - 1us) == 0);
    CHECK(s.takes(5, k, evening + 1h) == 2); // a new month too
    CHECK(s.take(k, evening + 25h).decisions[1].remaining == 0);
}

TEST_CASE("redis calls: the sliding window is exact where products pass 2^53")
{
    redis_under_test s;
    std::mt19937_64 random(7);
    int refused = 0;
    for (int i = 0; i < 300; ++i) {
        const auto period = 1 + static_cast<std::int64_t>(random() % 50'000'000'000'000); // to 19 months
        const auto left = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(period));
        const auto previous = (std::uint64_t{1} << 50) + random() % (std::uint64_t{1} << 50);
        const auto fits = static_cast<std::uint64_t>(static_cast<wide>(previous) * left / period);
        const auto limit = std::max<std::uint64_t>(2, fits + random() % 3); // one too few, just enough, one more
        s.define("s", {named("s", sliding_window(limit, microseconds{period}))}, noon);
        auto value = redis::fresh_value(s.packed("s"), noon);
        const auto window = noon.time_since_epoch().count() / period * period;
        value.rules[0].words = {static_cast<std::uint64_t>(window), previous, 0};
        const time_point now{microseconds{window + period - left}};
        value.last = time_point{};
        s.connection.call({"SET", s.key_of("s", "k"), encode(s.packed("s"), value), "PX", "100000"});
        const auto expected = judge(s.packed("s").limits(0), value.rules[0].words, now, 1);
        const auto result = s.take({{"s", "k"}}, now); // throws when the script and the arithmetic disagree
        CHECK(result.decisions[0] == expected);
        refused += result.admitted ? 0 : 1;
    }
    CHECK(refused > 50);
    CHECK(refused < 250);
}

TEST_CASE("redis calls: an invalid reply is malformed, never a crash or an admission")
{
    real_call c(all_kinds);
    c.take(redis::call_by::text);
    const auto good = c.take(redis::call_by::digest);
    REQUIRE(c.read(good).status == call_status::done);
    for (std::size_t n = 0; n < good.size(); ++n)
        CHECK(c.read(good.substr(0, n)).status == call_status::malformed);
    CHECK(c.read(good + '\0').status == call_status::malformed);
    for (std::size_t i = 0; i < good.size(); ++i) {
        auto altered = good;
        altered[i] = '\xff';
        c.result = {};
        const auto got = c.read(altered);
        for (std::size_t r = 0; got.status == call_status::done && r < all_kinds.size(); ++r)
            CHECK(c.decisions[r].remaining <= c.decisions[r].limit);
    }
    auto lying = good;
    lying[0] = '\0';
    CHECK(c.read(lying).status == call_status::disagreement);
    for (const char status : {'\x02', '\x03', '\x04', '\x05', '\xff'})
        // The chain has no such part.
        CHECK(c.read(status + good.substr(1, 7) + '\x09').status == call_status::malformed);
    CHECK(redis::read_correct("").status == call_status::malformed);
    CHECK(redis::read_correct(good).status == call_status::malformed);
}

TEST_CASE("redis calls: without memory Redis answers OOM, and nothing is charged")
{
    redis_under_test s;
    s.define("a", {minute(5)}, noon);
    s.define("b", {minute(5)}, noon);
    s.take({{"a", "k"}}, noon);
    s.connection.call({"CONFIG", "SET", "maxmemory", "1"});
    std::string error;
    try {
        s.take({{"a", "k"}, {"b", "k"}}, noon);
    } catch (const std::runtime_error& e) {
        error = e.what();
    }
    s.connection.call({"CONFIG", "SET", "maxmemory", "0"});
    CHECK(redis::classify(error) == redis::error_class::out_of_memory);
    CHECK(s.look({{"a", "k", {0}}}, noon).decisions[0].remaining == 4);
    CHECK(s.look({{"b", "k", {0}}}, noon).decisions[0].remaining == 5);
}

TEST_CASE("redis calls: where a key cannot be read, the scripts answer with Redis's error and replace nothing")
{
    const redis_server may_not, renamed({"--rename-command", "GET", "fetch"});
    for (const auto* const server : {&may_not, &renamed}) {
        redis_connection c(*server);
        const redis::detached_rules group({minute(2), named("open", concurrency(5))});
        const std::string_view key = "hg:1:{api:k}";
        const redis::chain_part part{&group.packed(), key, {}};
        CHECK(c.text({"SET", key, "kept"}) == "OK");
        if (server == &may_not)
            CHECK(c.text({"ACL", "SETUSER", "default", "-get"}) == "OK");
        for (const bool replace : {false, true}) {
            CAPTURE(replace);
            std::string take, correct;
            append_take(take, {&part, 1}, {.replace = replace}, redis::call_by::text);
            CHECK(c.call(take)->type == REDIS_REPLY_ERROR);
            const redis::correction all_back{&group.packed(), key, {&group.packed().rules(), "k", {}}, {}, noon};
            append_correct(correct, all_back, {.replace = replace}, redis::call_by::text);
            CHECK(c.call(correct)->type == REDIS_REPLY_ERROR);
        }
        std::string replaced;
        redis::append_replace(replaced, key, "", "new", 1000ms, redis::call_by::text);
        CHECK(c.call(replaced)->type == REDIS_REPLY_ERROR);
        // take_each.lua leaves it to take.lua to find out; it neither decides nor writes.
        const redis::detached_rules usual({minute(2)});
        const redis::chain_part of_usual{&usual.packed(), key, {}};
        std::string word, argument, each;
        redis::append_word(word, key);
        write_each_argument(argument, of_usual, {});
        append_take_each(each, 1, word, argument, redis::call_by::text);
        const auto said = c.call(each);
        REQUIRE(said->elements == 1);
        verdict v;
        std::vector<decision> decisions(max_decisions);
        const std::string reply(said->element[0]->str, said->element[0]->len);
        CHECK(redis::read_take(reply, {&of_usual, 1}, {}, v, decisions).status == call_status::unusual);
        CHECK(c.text({"GETRANGE", key, "0", "-1"}) == "kept");
    }
}

TEST_CASE("redis calls: a correction with a mark is done once, however often it is repeated")
{
    redis_under_test s;
    const auto script = with_test_clock(redis::correct_script());
    s.define("a", {named("hour", fixed_window(9, 1h)), named("open", concurrency(5))}, noon);
    const auto key = s.key_of("a", "k");
    CHECK(s.takes(5, {{"a", "k"}}, noon) == 5);
    const auto left = [&] { return s.look({{"a", "k", {0, 0}}}, noon).decisions; };
    const redis::correction one_back{
        &s.packed("a"), key, {&s.packed("a").rules(), "k", {}}, {}, noon, redis::correction::rules::others};
    const auto correct = [&](const std::string& mark) {
        std::string command;
        append_correct(command, one_back, {.owner = s.owner, .guess = noon, .mark = mark}, redis::call_by::digest,
                       script);
        const auto reply = s.connection.call(command);
        CHECK(redis::read_correct({reply->str, reply->len}).status == call_status::done);
    };
    for (int i = 0; i < 3; ++i) {
        correct(key + ":1");
        CHECK(left()[0].remaining == 5);
        CHECK(left()[1].remaining == 0); // the slots are corrected by another call
    }
    correct(key + ":2");
    CHECK(left()[0].remaining == 6);
    CHECK(s.connection.number({"PTTL", key + ":1"}) > 100'000); // longer than a repetition may come
    CHECK(s.connection.number({"PTTL", key + ":1"}) <= 120'000);
    // A value under other rules was not corrected, so it is not marked either.
    s.define("a", {named("hour", fixed_window(7, 1h)), named("open", concurrency(5))}, noon);
    const redis::correction other{
        &s.packed("a"), key, {&s.packed("a").rules(), "k", {}}, {}, noon, redis::correction::rules::others};
    std::string command;
    append_correct(command, other, {.owner = s.owner, .guess = noon, .mark = key + ":3"}, redis::call_by::digest,
                   script);
    const auto reply = s.connection.call(command);
    CHECK(redis::read_correct({reply->str, reply->len}).status == call_status::other_rules);
    CHECK(s.connection.number({"EXISTS", key + ":3"}) == 0);
}

TEST_CASE("redis calls: a key that was changed in between is not replaced")
{
    redis_under_test s;
    const auto replace = [&](std::string_view before, std::string_view after) {
        std::string command;
        redis::append_replace(command, "k", before, after, std::chrono::milliseconds{60'000});
        return s.connection.call(command)->integer;
    };
    CHECK(replace("x", "y") == 0);
    CHECK(replace("", "y") == 1);
    CHECK(replace("", "z") == 0);
    CHECK(s.connection.text({"GET", "k"}) == "y");
    CHECK(s.connection.number({"PTTL", "k"}) > 50'000);
    CHECK(replace("y", "") == 1);
    CHECK(s.connection.number({"EXISTS", "k"}) == 0);
    s.connection.call({"LPUSH", "k", "x"});
    CHECK(replace("", "z") == 0);
}

TEST_CASE("redis server: it can be stopped, started again and paused")
{
    redis_server server;
    {
        redis_connection c(server);
        c.call({"SET", "k", "v"});
    }
    server.stop();
    CHECK_THROWS(redis_connection(server).call({"PING"}));
    server.start();
    redis_connection c(server);
    CHECK(c.text({"GET", "k"}) == ""); // as after a crash
    server.pause();
    server.resume();
    CHECK(c.text({"PING"}) == "PONG");
}
