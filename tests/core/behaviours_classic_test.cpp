// Meters of each algorithm: classic behaviours of sliding log, funnel, token bucket and windows.
#include "tests/support/rules.hpp"

#include <doctest/doctest.h>

using namespace headgate::testing;

TEST_CASE("sliding log: the first 5 of 20 simultaneous requests pass, and each leaves exactly one period later")
{
    single_key key(sliding_log(5, 60s));
    CHECK(key.takes(20, start) == 5);
    CHECK_FALSE(key.take(start + 60s - 1us).admitted);
    CHECK(key.takes(20, start + 60s) == 5);
}

TEST_CASE("sliding log: requests leave the window one by one, in order")
{
    single_key key(sliding_log(3, 60s));
    for (int i = 0; i < 3; ++i)
        CHECK(key.take(start + i * 10s).admitted);
    CHECK(key.look(start + 30s, 1).retry_after == 30s);
    CHECK(key.look(start + 30s, 2).retry_after == 40s);
    CHECK(key.look(start + 30s, 3).retry_after == 50s);
    CHECK(key.takes(5, start + 60s) == 1);
    CHECK(key.takes(5, start + 70s) == 1);
    CHECK(key.look(start + 70s).reset_after == 60s);
}

TEST_CASE("sliding log: two requests in the same millisecond or microsecond count as two")
{
    single_key key(sliding_log(3, 1s));
    CHECK(key.take(start).remaining == 2);
    CHECK(key.take(start).remaining == 1);
    CHECK(key.take(start + 400us).remaining == 0);
    CHECK_FALSE(key.take(start + 500us).admitted);
    CHECK((key.words[0] & 0xffffffff) == 2); // requests of one microsecond share a record
}

TEST_CASE("sliding log: a request counts its cost")
{
    single_key key(sliding_log(10, 1s));
    CHECK(key.take(start, 7).remaining == 3);
    CHECK_FALSE(key.take(start, 4).admitted);
    CHECK(key.take(start, 3).remaining == 0);
    CHECK(key.look(start, 11).retry_after == never);
}

TEST_CASE("sliding log: 10 per second admits ten and refuses the eleventh")
{
    single_key key(sliding_log(10, 1s));
    CHECK(key.takes(10, start) == 10);
    CHECK_FALSE(key.take(start).admitted);
}

TEST_CASE("funnel: capacity 15 leaking 0.5 per second admits 15 of 20")
{
    single_key key(leaky_bucket(1, 2s, 14));
    CHECK(key.takes(20, start) == 15);
}

TEST_CASE("funnel: capacity 6 leaking 0.1 per second admits 6 of 20, and one more after 10 s")
{
    single_key key(leaky_bucket(1, 10s, 5));
    CHECK(key.takes(20, start) == 6);
    CHECK(key.takes(20, start + 10s - 1us) == 0);
    CHECK(key.takes(20, start + 10s) == 1);
}

TEST_CASE("funnel: after years without requests it has exactly its full capacity, in the same two words")
{
    single_key key(leaky_bucket(1, 10s, 5));
    CHECK(key.takes(20, start) == 6);
    for (const auto idle : {std::chrono::hours{24 * 365 * 5}, std::chrono::hours{24 * 365 * 100}}) {
        CHECK(key.look(start + idle).remaining == 6);
        CHECK(key.takes(20, start + idle) == 6);
    }
    CHECK(key.words.size() == 2);
    CHECK(key.meter.max_words() == key.meter.words());
}

TEST_CASE("token bucket: it refills from `initial`, never above the burst, and needs no timer")
{
    auto r = token_bucket(1, 1s, 10);
    r.initial = 3;
    single_key key(r);
    CHECK(key.takes(20, start) == 3);
    CHECK(key.takes(20, start + 4s) == 4);
    CHECK(key.takes(20, start + 1000s) == 10);
    CHECK(key.words.size() == 2);
}

TEST_CASE("token bucket: with initial 0 a new key waits for its first token")
{
    auto r = token_bucket(1, 1s, 10);
    r.initial = 0;
    single_key key(r);
    CHECK(key.look(start, 1).retry_after == 1s);
    CHECK_FALSE(key.take(start + 1s - 1us).admitted);
    CHECK(key.take(start + 1s).admitted);
}

TEST_CASE("token bucket: fractions of a token are kept between requests")
{
    single_key key(token_bucket(3, 10s, 5)); // one per 3.33.. s
    CHECK(key.takes(9, start) == 5);
    // After 2.5 s there are three quarters of a token. Refused requests neither lose nor add a fraction.
    for (int i = 1; i <= 4; ++i)
        CHECK_FALSE(key.take(start + i * 833'333us).admitted);
    CHECK(key.take(start + 3'333'334us).admitted);
    CHECK(key.takes(9, start + 10s) == 2); // three in ten seconds, not 2 and not 4
    CHECK_FALSE(key.take(start + 13'333'333us).admitted);
    CHECK(key.take(start + 13'333'334us).admitted);
}

TEST_CASE("token bucket: a request may take several tokens, a refused one takes none")
{
    single_key key(token_bucket(1, 1s, 5));
    CHECK(key.take(start, 4).remaining == 1);
    CHECK_FALSE(key.take(start, 2).admitted);
    CHECK(key.take(start, 1).remaining == 0);
}

TEST_CASE("token bucket: a huge corrected cost is paid off at the rule's rate")
{
    single_key key(token_bucket(1, 1s, 5));
    charge(key.meter, key.words, start, UINT64_MAX);
    for (const auto later : {microseconds{0s}, microseconds{1h}, microseconds{24h * 36500}}) {
        CHECK_FALSE(key.look(start + later, 1).admitted);
        CHECK(key.look(start + later).remaining == 0);
        CHECK(key.look(start + later, 1).retry_after > 24h * 36500);
    }
    CHECK(recovered_at(key.meter, key.words) > start + 24h * 36500);
    // 2^44 tokens of 2^20 ticks are a debt of 2^64, whose lower half is zero.
    single_key even(token_bucket(1, 1'048'576us, 5));
    charge(even.meter, even.words, start, std::uint64_t{1} << 44);
    CHECK_FALSE(even.look(start + 1h, 1).admitted);
}

TEST_CASE("token bucket: capacity one admits one request, then waits a full interval")
{
    single_key key(token_bucket(1, 1s, 1));
    CHECK(key.take(start).admitted);
    CHECK(key.take(start + 1s - 1us).retry_after == 1us);
    CHECK(key.take(start + 1s).admitted);
}

TEST_CASE("fixed window, align first: it begins with its first request and lasts one period")
{
    single_key key(fixed_window(3, 60s, window_align::first));
    const auto first = start + 17s;
    CHECK(key.takes(5, first) == 3);
    CHECK(key.look(first + 10s, 1).retry_after == 50s);
    CHECK_FALSE(key.take(first + 60s - 1us).admitted);
    CHECK(key.takes(5, first + 60s) == 3);
    CHECK(key.look(first + 60s, 1).retry_after == 60s);
}

TEST_CASE("fixed window, align clock: it begins and ends with the minute of the clock")
{
    single_key key(fixed_window(3, 60s));
    CHECK(key.takes(5, start + 17s) == 3);
    CHECK(key.look(start + 17s, 1).retry_after == 43s);
    CHECK(key.takes(5, start + 60s - 1us) == 0);
    CHECK(key.takes(5, start + 60s) == 3);
}

TEST_CASE("fixed window: a cost above the limit is never admitted, a cost equal to the limit is")
{
    single_key key(fixed_window(3, 60s));
    CHECK(key.look(start, 4).retry_after == never);
    CHECK(key.take(start, 3).remaining == 0);
}

TEST_CASE("fixed window, align first: after everything is given back a new window begins with the next request")
{
    single_key key(fixed_window(3, 60s, window_align::first));
    key.take(start, 2);
    CHECK(key.give_back(start, start + 1s, 2) == 2);
    CHECK(key.take(start + 30s).reset_after == 60s);
}

TEST_CASE("fixed window: a charge of an ended window is not given back to the next one")
{
    for (const auto align : {window_align::first, window_align::clock}) {
        single_key key(fixed_window(3, 60s, align));
        key.take(start + 1s, 2);
        key.take(start + 61s, 2);
        CHECK(key.give_back(start + 1s, start + 62s, 2) == 0);
        CHECK(key.give_back(start + 61s, start + 62s, 2) == 2);
    }
}

TEST_CASE("sliding window: a refund goes to the window that was charged")
{
    single_key key(sliding_window(10, 60s));
    key.take(start + 30s, 8);
    key.take(start + 90s, 4);
    CHECK(key.look(start + 90s).remaining == 2);
    CHECK(key.give_back(start + 30s, start + 90s, 4) == 4); // half of the charge still counts
    CHECK(key.look(start + 90s).remaining == 4);
    CHECK(key.give_back(start + 90s, start + 90s, 4) == 4);
    CHECK(key.look(start + 90s).remaining == 8);
    CHECK(key.give_back(start + 30s, start + 190s, 4) == 0);
    single_key edge(sliding_window(10, 60s));
    edge.take(start, 6);
    CHECK(edge.give_back(start, start + 60s, 6) == 6); // charged in the first microsecond of the previous window
}

TEST_CASE("concurrency: it admits as many as the limit, and one more when one ends")
{
    single_key key(concurrency(2));
    CHECK(key.takes(5, start) == 2);
    CHECK(key.take(start).retry_after == 1s); // a fixed hint: the end of a request is not known
    CHECK(key.look(start, 3).retry_after == never);
    CHECK(key.give_back(start, start + 5s) == 1);
    CHECK(key.takes(5, start + 5s) == 1);
    CHECK(key.give_back(start, start + 5s, 100) == 2);
    CHECK(recovered_at(key.meter, key.words) <= start);
}

TEST_CASE("count_refused: after refused requests the wait is that of a full rule")
{
    single_key bucket(token_bucket(1, 1s, 3));
    bucket.take(start, 1);
    bucket.refuse(start, 5);
    CHECK(bucket.look(start, 1).retry_after == 1s);
    CHECK(bucket.look(start, 3).retry_after == 3s);
    single_key log(sliding_log(2, 60s));
    CHECK(log.takes(3, start) == 2);
    log.refuse(start + 30s);
    CHECK(log.look(start + 60s).remaining == 1); // the refused request has replaced the oldest
    CHECK(log.look(start + 90s).remaining == 2);
    single_key sliding(sliding_window(4, 60s));
    sliding.take(start, 3);
    sliding.refuse(start, 9);
    CHECK(sliding.look(start).remaining == 0);
    CHECK(sliding.look(start, 1).retry_after == 75s);
    single_key fixed(fixed_window(4, 60s));
    fixed.take(start, 3);
    fixed.refuse(start, 9);
    CHECK(fixed.look(start).remaining == 0);
    CHECK(fixed.give_back(start, start, 9) == 4);
}
