// A store in Redis, for one worker: decides chains on the servers that have their keys, repeats a call after repairing
// the cause (such as a value under another version of the rules), and turns replies into decisions. Everything runs on
// the thread of the worker.
#pragma once

#include "limiter/redis/barrier.hpp"
#include "limiter/redis/caller.hpp"
#include "limiter/redis/correct_call.hpp"
#include "limiter/redis/key_value.hpp"
#include "limiter/redis/redis_key.hpp"
#include "limiter/redis/slot_groups.hpp"
#include "limiter/redis/slots_in_flight.hpp"
#include "limiter/redis/take_together.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace headgate::limiter::redis {

// The scripts that are called; tests use scripts with another clock.
struct script_set
{
    const script* take = &take_script();
    const script* take_each = &take_each_script();
    const script* correct = &correct_script();
    std::string clock_key = {}; // the prefix of the tests' clocks, one in each slot; empty: TIME
};

// A correction of a charge that has failed and will be repeated. It owns what it needs.
struct unfinished_correction
{
    std::shared_ptr<const void> keeps; // the rules
    const rule_group* group = nullptr;
    const rule_group* charged_under = nullptr;
    std::string key;
    std::vector<std::uint64_t> charged, actual;
    time_point charged_at{};
    std::uint64_t number = 0; // of its mark (lua/correct.lua); 0: it has none
    bool may_be_done = false; // a try had no reply
    steady_time first_try{}, next_try{};
    std::chrono::microseconds pause{100'000};
};

// What a store knows beside Redis. It outlives the store when another one with other settings takes its place.
struct store_state
{
    explicit store_state(std::uint64_t first_holder) : slots(first_holder) {}
    slots_in_flight slots;
    std::deque<unfinished_correction> unfinished;
};

class store
{
public:
    // Reservations of a chain over several slots are given back after this time, unless they were confirmed.
    static constexpr microseconds reservation_lifetime{10'000'000};

    // Corrections of charges that are kept to be repeated. A correction beyond that is lost.
    static constexpr std::size_t most_unfinished = 10'000;

    // `state`: of the store whose place this one takes; null: none.
    store(std::shared_ptr<link_source> links, holder owner, key_form form = key_form::plain_when_short,
          script_set scripts = {}, std::shared_ptr<store_state> state = nullptr);
    store(std::shared_ptr<link> to, holder owner, key_form form = key_form::plain_when_short, script_set scripts = {})
        : store(std::make_shared<single_link>(std::move(to)), owner, form, std::move(scripts))
    {}
    ~store();

    link_source& links() { return caller_->links(); }
    const store_counters& seen() const { return caller_->seen; }
    error_class last_error() const { return caller_->last_error(); }
    std::string_view last_error_text() const { return caller_->last_error_text(); }

    // Like memory_store::take, at Redis's time. The timeout counts from `began`, the beginning of the request's limit
    // phase, so that all its chains together take no longer than one timeout.
    task<trouble> take(std::span<const part> parts, std::span<decision> decisions, verdict& out, steady_time began)
    {
        return ask_chain(parts, false, decisions, out, began);
    }
    task<trouble> take(std::span<const part> parts, std::span<decision> decisions, verdict& out)
    {
        return take(parts, decisions, out, turn_began());
    }
    task<trouble> look(std::span<const part> parts, std::span<decision> decisions, verdict& out)
    {
        return ask_chain(parts, true, decisions, out, turn_began());
    }
    // Settles an earlier charge, and ends the slots of a request in flight (actual: 0) that it took under `holder`, as
    // the verdict says; 0: any. `group` has the current rules; `as_charged.group` may be an older version of it;
    // `keeps` owns both. What fails is repeated by maintain().
    task<trouble> correct(std::shared_ptr<const void> keeps, const rule_group& group, const part& as_charged,
                          std::span<const std::uint64_t> actual, time_point charged_at, std::uint64_t holder = 0);

    // Repeats corrections that have failed, and renews the requests in flight. To be called several times a second,
    // and not again before it has returned.
    task<void> maintain();
    // Returns how many corrections have failed and are not done yet.
    std::size_t pending_corrections() const
    {
        return repeated_now_ + state_->slots.doubtful() + state_->unfinished.size();
    }
    const std::shared_ptr<store_state>& state() const { return state_; }

    // For operators.
    task<trouble> inspect(const rule_group& group, std::string_view key, std::optional<key_report>& out);
    task<trouble> list(const rule_group& group, std::string_view key_prefix, std::size_t most,
                       std::vector<key_report>& out);
    task<trouble> reset(const rule_group& group, std::string_view key, bool& found);
    task<trouble> grant(const rule_group& group, std::string_view key, std::uint64_t n, std::uint64_t& most);
    task<trouble> block(const rule_group& group, std::string_view key, microseconds time, bool& done);
    task<trouble> unblock(const rule_group& group, std::string_view key, bool& found);

    // To be called after a reload: a new group may have the address of one that was destroyed.
    void forget_rules() { packed_.clear(); }

private:
    using shared_rules = std::shared_ptr<const packed_group>;
    // A string from spare_, returned at the end of the scope.
    class spare_text;

    // The rules of one group in Redis's form, and the connection on which they were published.
    struct known_rules
    {
        shared_rules rules;
        std::shared_ptr<const detached_rules> own; // a copy that outlives the configuration; made when it is needed
        std::uint16_t rules_slot = 0;              // of rules_key
        std::pair<std::uint64_t, std::uint64_t> published;
    };
    // One decision about a chain.
    struct question
    {
        steady_time began{};
        std::array<shared_rules, max_parts> rules;
        std::array<chain_part, max_parts> parts;
        std::size_t count = 0;
        bool takes_slots = false;
        take_options how;
        std::span<const chain_part> all() const { return {parts.data(), count}; }
    };
    struct slot_part; // of a chain over several slots
    struct follow_up;

    shared_rules packed(const rule_group& group);
    void publish(known_rules& known);
    static task<void> publish_later(std::shared_ptr<caller> by, std::uint16_t slot, std::string key,
                                    std::string description);
    std::uint16_t slot_for(std::string_view key) { return links().spreads_keys() ? slot_of(key) : std::uint16_t{0}; }
    steady_time turn_began() { return caller_->turn_began(); }
    void spawn_task(task<void> work) { spawn(caller_->loop().get_executor(), std::move(work)); }
    void note_time(time_point now);
    time_point guess_time();
    bool knows_time() const { return redis_time_ != time_point{}; }
    time_point latest_for(const question& q, time_point guess);
    time_point latest_call(time_point guess);
    holder owner() const { return {state_->slots.holder(), slot_lifetime_}; }
    std::shared_ptr<const detached_rules> own_rules(const rule_group& group);

    task<trouble> ask_chain(std::span<const part> parts, bool look, std::span<decision> decisions, verdict& out,
                            steady_time began);
    task<trouble> decide(question& q, std::span<decision> decisions, verdict& out);
    void begin_slots(const question& q);
    void note_slots(const question& q, trouble failed, const verdict& out, std::span<const decision> decisions);
    bool can_join_batch(const question& q, std::uint16_t slot);
    trouble unexplained(call_status status);
    // Repairs the key that kept a call from deciding, so that the call can be repeated.
    task<trouble> mend(steady_time began, std::uint16_t slot, const packed_group& rules, std::string key,
                       call_answer result, std::string value, bool& replace, time_point& guess);
    task<trouble> carry_over(steady_time began, std::uint16_t slot, const packed_group& to, std::string key,
                             std::string value, time_point now, bool& known);
    task<trouble> find_rules(steady_time began, std::uint64_t fingerprint, std::shared_ptr<const detached_rules>& out);

    // Corrections (store_corrections.cpp).
    task<trouble> end_slots(std::shared_ptr<const detached_rules> own, correction ended, std::uint64_t holder);
    task<trouble> call_correct(std::uint16_t slot, const packed_group& rules, correction c, correct_options& how);
    task<trouble> try_correction(unfinished_correction& what);
    task<void> drop_mark(std::uint16_t slot, std::string mark);
    task<trouble> correct_charge(unfinished_correction what);
    void keep_for_later(unfinished_correction what, trouble failed);
    std::vector<unfinished_correction> take_unfinished();
    task<void> repeat_correction(unfinished_correction what, barrier& all);
    task<void> correct_count(slots_in_flight::job what, barrier& all);
    task<bool> keep_at_most(const slots_in_flight::job& what);
    task<bool> keep_at_most(const slots_in_flight::job& what, std::string value, time_point now);
    void notice_reconnection();

    // A chain over several slots (store_groups.cpp).
    std::uint64_t next_reservation();
    task<trouble> ask_groups(question& q, const slot_groups& groups, std::span<decision> decisions, verdict& out);
    task<void> ask_slot(question& q, slot_part& of, barrier& all);
    task<trouble> ask_slot_now(question& q, slot_part& of);
    task<void> count_refusal(question& q, std::span<slot_part> of, std::span<decision> decisions, verdict& out);
    call_answer read_all(std::span<const slot_part> of, bool counted, const take_options& how, verdict& out,
                         std::span<decision> decisions);
    void confirm(const question& q, const slot_part& of, std::span<const decision> decisions);
    void count_later(const slot_part& of, const chain_part& p, std::span<const std::uint64_t> costs);
    void remember_start(const slot_part& of);
    std::vector<follow_up> refunds_of(const question& q, const slot_part& of) const;
    task<void> count_in_slot(question& q, slot_part& of, barrier& all);
    static task<trouble> try_once(caller& by, steady_time began, const follow_up& what);
    static task<void> follow(std::shared_ptr<caller> by, follow_up what);

    using change = std::function<bool(key_value&, time_point now)>; // returns false to leave it unchanged
    task<trouble> change_key(const rule_group& group, std::string_view key, bool make, const change& act, bool& done);
    task<trouble> read_clock(steady_time began, std::uint16_t slot, std::string_view key, time_point& now);
    task<trouble> scan(std::shared_ptr<link> server, const rule_group& group, std::string_view key_prefix,
                       std::vector<std::string>& found);

    std::shared_ptr<caller> caller_; // shared with calls in the background
    std::shared_ptr<take_together> together_;
    std::shared_ptr<store_state> state_;
    microseconds slot_lifetime_;
    key_form form_;
    script_set scripts_;
    boost::unordered_flat_map<const rule_group*, known_rules> packed_;
    boost::unordered_flat_map<std::uint64_t, std::shared_ptr<const detached_rules>> other_rules_; // by fingerprint
    std::vector<std::string> spare_;
    time_point redis_time_{}; // the last time that Redis returned, and when it came
    steady_time redis_time_at_{};
    std::uint64_t last_reservation_, last_correction_;
    std::uint64_t connected_ = 0; // how often links had connected when maintain() last looked
    std::size_t repeated_now_ = 0;
    steady_time renewed_{}, forgot_{};
    std::vector<slots_in_flight::job> to_renew_; // of the last round, not sent yet
};

} // namespace headgate::limiter::redis
