// Redis under the contract tests: a simple blocking driver of the functions that the gateway's client calls. The tests
// control the time: the line of each script that reads the clock is replaced by one that reads a key.
#pragma once

#include "limiter/redis/correct_call.hpp"
#include "limiter/redis/key_value.hpp"
#include "limiter/redis/take_each_call.hpp"
#include "tests/contract/limiter_under_test.hpp"
#include "tests/support/redis_server.hpp"

#include <hiredis/hiredis.h>

#include <map>
#include <memory>
#include <mutex>

namespace headgate::testing {

namespace redis = headgate::limiter::redis;

// One server for all tests of an executable; each test begins with an empty one.
redis_server& shared_server();

// A connection, one call at a time.
class redis_connection
{
public:
    explicit redis_connection(const redis_server& to);

    using reply = std::unique_ptr<redisReply, void (*)(void*)>;
    // Sends the appended command and reads its reply. Throws when there is none.
    reply call(const std::string& command);
    reply call(std::initializer_list<std::string_view> words);
    std::string text(std::initializer_list<std::string_view> words); // the text of a string reply; empty for nil
    long long number(std::initializer_list<std::string_view> words);

private:
    std::unique_ptr<redisContext, void (*)(redisContext*)> context_;
};

// Returns the script with its clock in the key `now`. Throws when the line does not occur exactly once.
redis::script with_test_clock(const redis::script& s);

class redis_under_test : public limiter_under_test
{
public:
    redis_under_test();

    void define(const std::string& group, std::vector<rule> rules, time_point now) override;
    answer take(const chain& wanted, time_point now) override { return ask_for(wanted, now, false); }
    answer look(const chain& wanted, time_point now) override { return ask_for(wanted, now, true); }
    void give_back(const chain& wanted, time_point charged_at, time_point now) override;
    answer reserve(const chain& wanted, time_point now, reservation& id) override;
    bool settle(reservation id, const std::vector<std::uint64_t>& actual, time_point now) override;
    std::uint64_t grant(const std::string& group, const std::string& key, std::uint64_t n, time_point now) override;
    bool reset(const std::string& group, const std::string& key, time_point now) override;
    bool block(const std::string& group, const std::string& key, time_point until, time_point now) override;
    bool unblock(const std::string& group, const std::string& key, time_point now) override;
    std::optional<key_report> inspect(const std::string& group, const std::string& key, time_point now) override;
    std::vector<key_report> list(const std::string& group, const std::string& prefix, time_point now) override;

    // Changes the charge of `asked.costs` to `actual`.
    void correct(const ask& wanted, const std::vector<std::uint64_t>& actual, time_point charged_at, time_point now);
    void renew(const std::string& group, const std::string& key, time_point now);

    static std::string key_of(const std::string& group, const std::string& key);
    std::string value_of(const std::string& group, const std::string& key);
    const redis::packed_group& packed(const std::string& group) const { return *groups.at(group)->packed; }
    // Returns a key without a time to live, if there is one.
    std::string key_for_ever();

    redis_connection connection;
    redis::holder owner{7, std::chrono::hours{24 * 365 * 140}};
    std::uint64_t conversions = 0;
    bool wrong_guesses = false; // of Redis's time
    bool in_company = false;    // usual chains are sent in one call with those of other keys

private:
    struct defined
    {
        group_lineage lineage;
        std::unique_ptr<rule_group> rules;
        std::unique_ptr<redis::packed_group> packed;
    };
    struct held
    {
        chain wanted;
        std::vector<std::shared_ptr<defined>> under;
        time_point charged_at;
    };

    answer ask_for(const chain& wanted, time_point now, bool look);
    redis::call_answer call_take_each(const redis::chain_part& part, const redis::take_options& how, verdict& out,
                                      std::vector<decision>& decisions);
    void correct(const ask& wanted, const defined& under, const std::vector<std::uint64_t>& actual,
                 time_point charged_at, time_point now);
    void set_clock(time_point now);
    void convert(const redis::packed_group& to, const std::string& key, std::string_view value, time_point now);
    // Reads a key's value, lets `act` change it, and writes it. Returns false when it does not exist, or `act` returns
    // false.
    template <class Act>
    bool change(const std::string& group, const std::string& key, time_point now, bool make, Act act);

    std::recursive_mutex one_at_a_time;
    std::map<std::string, std::shared_ptr<defined>> groups;
    std::map<reservation, held> reservations;
    reservation last_reservation = 0;
    std::string last_reply_text; // the last reply of take.lua
    redis::script take_script, take_each_script, correct_script;
};

} // namespace headgate::testing
