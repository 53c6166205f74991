// Makes one call to the server that has the key, and repeats it when Redis's error allows that: with the text of a
// script that the server does not have, on another node, on the next master; all within the timeout of one command.
#pragma once

#include "limiter/redis/client/error_class.hpp"
#include "limiter/redis/client/link_source.hpp"
#include "limiter/redis/scripts.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace headgate::limiter::redis {

// How a call ended. Anything but `none` is an outage for the request.
enum class trouble : std::uint8_t
{
    none,
    timeout,
    unreachable,
    broken,
    overloaded,
    refused,   // an error reply
    malformed, // not a reply that our scripts send
    confused   // the call was repeated too often
};
std::string_view name_of(trouble t);
// Returns whether the call may have been done all the same, or may still be done.
inline bool may_be_done(trouble t) { return t == trouble::timeout || t == trouble::broken || t == trouble::malformed; }

struct store_counters
{
    std::uint64_t conversions = 0, lost_rules = 0, foreign = 0, disagreements = 0, texts_sent = 0, errors = 0;
    std::uint64_t lost_corrections = 0; // of charges: neither done nor repeated any more
    // On a cluster.
    std::uint64_t redirections = 0;  // MOVED and ASK that were followed
    std::uint64_t tried_again = 0;   // TRYAGAIN
    std::uint64_t cross_slots = 0;   // CROSSSLOT: a defect of headgate
    std::uint64_t split_chains = 0;  // decided by calls to several slots
    std::uint64_t lapsed = 0;        // reservations whose owner died, given back
    std::uint64_t lost_outcomes = 0; // reservations that could be neither confirmed nor given back
};

class caller
{
    static constexpr int most_repeats = 4; // of one call

public:
    explicit caller(std::shared_ptr<link_source> links) : links_(std::move(links)) {}

    link_source& links() { return *links_; }
    event_loop& loop() { return links_->route_to(0).to->loop(); }
    steady_time turn_began() { return loop().turn_began(); }
    std::chrono::microseconds timeout() { return links_->route_to(0).to->options().timeout; }
    error_class last_error() const { return last_error_; }
    // Returns the last error reply for the log: its first word, or all of it where the first word says little.
    std::string_view last_error_text() const { return last_error_text_; }

    // Makes one call that serves `requests` requests: `write(out, by)` appends it. When it succeeds, the reply is in
    // `got`, valid until the next suspension.
    template <class Write>
    task<trouble> call(std::uint16_t slot, steady_time began, Write& write, link::answer& got,
                       std::size_t requests = 1);

    // Classifies and counts the result of a command that is not repeated.
    trouble trouble_of(const link::answer& got);

    store_counters seen;

private:
    std::shared_ptr<link_source> links_;
    error_class last_error_ = error_class::other;
    std::string last_error_text_;
};

// Redis runs commands in their order: when a text was sent after this call, the digest is tried once more. So one text
// per connection is enough, however many calls find it missing at the same time (M2). Another script's text in between
// costs a repetition, and there are no more scripts than repetitions. A server that answers with another error has run
// nothing; the link source decides whether another server can.
template <class Write>
task<trouble> caller::call(std::uint16_t slot, steady_time began, Write& write, link::answer& got, std::size_t requests)
{
    auto by = call_by::digest;
    auto way = links_->route_to(slot);
    for (int round = 0;;) {
        auto& calls = way.to->calls();
        const auto number = ++calls.sent;
        if (by == call_by::text) {
            calls.last_text = number;
            ++seen.texts_sent;
        }
        const auto append = [&](std::string& out) { write(out, by); };
        got = co_await way.to->ask(began, append, way.asking, requests);
        if (got.failed == failure::none && got.value().is_error() && round < most_repeats &&
            classify(got.value().text()) == error_class::no_script) {
            by = calls.last_text > number ? call_by::digest : call_by::text;
            ++round;
            continue;
        }
        const auto failed = trouble_of(got);
        if (failed != trouble::refused || round == most_repeats)
            co_return failed;
        const auto error = last_error_;
        const auto deadline = began + way.to->options().timeout;
        const bool again = co_await links_->reroute(way, slot, std::string(got.value().text()), deadline);
        if (!again)
            co_return trouble::refused;
        by = call_by::digest;
        round += error == error_class::try_again ? 0 : 1; // these are limited only by the deadline
    }
}

} // namespace headgate::limiter::redis
