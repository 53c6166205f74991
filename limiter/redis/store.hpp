// A worker's side of a store in Redis: asks over its link, asks again where Redis says how (another version of the
// rules, a script it does not have), and explains the answer. Everything is a coroutine of the worker's thread.
#pragma once

#include "limiter/redis/correct_call.hpp"
#include "limiter/redis/error_class.hpp"
#include "limiter/redis/key_value.hpp"
#include "limiter/redis/link_source.hpp"
#include "limiter/redis/redis_key.hpp"
#include "limiter/redis/take_call.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace headgate::limiter::redis {

// How a call ended. Anything but `none` is an outage to the request that asked.
enum class trouble : std::uint8_t
{
    none,
    timeout,
    unreachable,
    broken,
    overloaded,
    refused,   // an error reply
    malformed, // not an answer of our scripts
    confused   // asked again and again, to no end
};
std::string_view name_of(trouble t);

// The scripts that are called; tests put a clock of their own into them.
struct script_set
{
    const script* take = &take_script();
    const script* correct = &correct_script();
    std::string clock_key = {}; // where the tests' clock is; empty: TIME
};

class store
{
    static constexpr int most_asked = 4; // times a call is sent again

public:
    struct counters
    {
        std::uint64_t conversions = 0, lost_rules = 0, foreign = 0, disagreements = 0, texts_sent = 0, errors = 0;
    };

    store(std::shared_ptr<link_source> links, holder who, key_form form = key_form::plain_when_short,
          script_set scripts = {});
    store(std::shared_ptr<link> to, holder who, key_form form = key_form::plain_when_short, script_set scripts = {})
        : store(std::make_shared<single_link>(std::move(to)), who, form, std::move(scripts))
    {}
    ~store();

    link_source& links() { return *links_; }
    const counters& seen() const { return seen_; }
    error_class last_error() const { return last_error_; }

    // As memory_store has them; the moment is Redis's.
    task<trouble> take(std::span<const part> parts, std::span<decision> decisions, verdict& out)
    {
        return ask_chain(parts, false, decisions, out);
    }
    task<trouble> look(std::span<const part> parts, std::span<decision> decisions, verdict& out)
    {
        return ask_chain(parts, true, decisions, out);
    }
    // `as_charged.group` may be an older version of `group`, which is what the key is judged by now.
    task<trouble> correct(const rule_group& group, const part& as_charged, std::span<const std::uint64_t> actual,
                          time_point charged_at);
    // Tells Redis that what this gateway holds of the key is still held.
    task<trouble> renew(const rule_group& group, std::string_view key);

    // Operators' verbs.
    task<trouble> inspect(const rule_group& group, std::string_view key, std::optional<key_report>& out);
    task<trouble> list(const rule_group& group, std::string_view key_prefix, std::size_t most,
                       std::vector<key_report>& out);
    task<trouble> reset(const rule_group& group, std::string_view key, bool& found);
    task<trouble> grant(const rule_group& group, std::string_view key, std::uint64_t n, std::uint64_t& most);
    task<trouble> block(const rule_group& group, std::string_view key, microseconds time, bool& done);
    task<trouble> unblock(const rule_group& group, std::string_view key, bool& found);

    // A reload: groups that are gone must not be mistaken for new ones at the same address.
    void forget_rules() { packed_.clear(); }

private:
    using shared_rules = std::shared_ptr<const packed_group>;
    // A text of the store's, given back at the end.
    class spare_text;

    shared_rules packed(const rule_group& group);
    void publish(const packed_group& rules);
    task<void> publish_later(std::string key, std::string description);
    task<trouble> ask_chain(std::span<const part> parts, bool look, std::span<decision> decisions, verdict& out);
    trouble trouble_of(const link::answer& got);
    steady_time turn_began() { return links_->current().turn_began(); }
    // One call of a script, `write(out, by)`: with its text when Redis does not have it.
    template <class Write>
    task<trouble> call(steady_time began, Write& write, link::answer& got);
    task<trouble> carry_over(steady_time began, const packed_group& to, std::string key, std::string value,
                             time_point now, bool& known);
    task<trouble> find_rules(steady_time began, std::uint64_t fingerprint, std::shared_ptr<const detached_rules>& out);
    using change = std::function<bool(key_value&, time_point now)>; // false: leave it as it is
    task<trouble> change_key(const rule_group& group, std::string_view key, bool make, const change& act, bool& done);
    task<trouble> read_clock(steady_time began, time_point& now);

    std::shared_ptr<link_source> links_;
    holder who_;
    key_form form_;
    script_set scripts_;
    boost::unordered_flat_map<const rule_group*, shared_rules> packed_;
    boost::unordered_flat_map<std::uint64_t, std::shared_ptr<const detached_rules>> other_rules_; // by fingerprint
    // By fingerprint: to which connection of which link.
    boost::unordered_flat_map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> published_;
    std::vector<std::string> spare_;
    time_point redis_time_{}; // the last Redis told, and when
    steady_time redis_time_at_{};
    std::uint64_t asked_ = 0;      // calls so far
    std::uint64_t text_asked_ = 0; // the last of them that carried a script's text
    error_class last_error_ = error_class::other;
    counters seen_;
};

// Commands are run in their order: when the text was sent after this call was, its digest is known by now. So one text
// a connection is enough, however many calls find it missing at once (M2). A server that is not the master any more has
// run nothing: whoever is the master by then is asked instead, in the same time.
template <class Write>
task<trouble> store::call(steady_time began, Write& write, link::answer& got)
{
    auto by = call_by::digest;
    for (int round = 0;; ++round) {
        const auto number = ++asked_;
        if (by == call_by::text) {
            text_asked_ = number;
            ++seen_.texts_sent;
        }
        const auto append = [&](std::string& out) { write(out, by); };
        auto& to = links_->current();
        const auto whom = links_->generation();
        const auto deadline = began + to.options().timeout;
        got = co_await to.ask(began, append);
        if (round < most_asked && got.failed == failure::none && got.said().is_error() &&
            classify(got.said().text()) == error_class::no_script) {
            by = text_asked_ > number ? call_by::digest : call_by::text;
            continue;
        }
        const auto failed = trouble_of(got);
        if (failed != trouble::refused || !is_wrong_server(last_error_) || round == most_asked)
            co_return failed;
        const bool is_found = co_await links_->until_another(whom, deadline);
        if (!is_found)
            co_return trouble::refused;
        by = call_by::digest;
    }
}

} // namespace headgate::limiter::redis
