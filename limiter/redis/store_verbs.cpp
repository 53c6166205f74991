// The operators' verbs: read the value of a key, change it here by the arithmetic of limiter/core, and write it back
// unless it was changed in between.
#include "limiter/redis/client/command.hpp"
#include "limiter/redis/store.hpp"

#include <algorithm>
#include <charconv>

namespace headgate::limiter::redis {

namespace {

constexpr int most_rounds = 20;
constexpr std::string_view scan_step = "500";

std::optional<time_point> read_time(const reply& from)
{
    if (from.size() != 2)
        return std::nullopt;
    std::int64_t seconds = 0, us = 0;
    const auto s = from[0].text(), u = from[1].text();
    const auto read = [](std::string_view text, std::int64_t& to) {
        return std::from_chars(text.data(), text.data() + text.size(), to).ec == std::errc{};
    };
    if (!read(s, seconds) || !read(u, us))
        return std::nullopt;
    return time_point{microseconds{seconds * 1'000'000 + us}};
}

} // namespace

// Reads the clock of the server that has the key.
task<trouble> store::read_clock(steady_time began, std::uint16_t slot, std::string_view key, time_point& now)
{
    const bool is_real = scripts_.clock_key.empty();
    const auto test_clock = scripts_.clock_key + std::string(key.substr(std::min(key.find('{'), key.size())));
    link::answer got;
    const auto write = [&](std::string& out, call_by) {
        if (is_real)
            append_command(out, {"TIME"});
        else
            append_command(out, {"GET", test_clock});
    };
    const auto failed = co_await caller_->call(slot, began, write, got);
    if (failed != trouble::none)
        co_return failed;
    if (is_real) {
        const auto time = read_time(got.value());
        now = time.value_or(time_point{});
        co_return time ? trouble::none : trouble::malformed;
    }
    std::int64_t us = 0;
    const auto text = got.value().text();
    std::from_chars(text.data(), text.data() + text.size(), us);
    now = time_point{microseconds{us}};
    co_return trouble::none;
}

task<trouble> store::change_key(const rule_group& group, std::string_view key, bool make, const change& act, bool& done)
{
    const auto rules = packed(group);
    std::string name;
    append_key(name, group.name(), key, form_);
    const auto slot = slot_for(name);
    done = false;
    for (int round = 0; round < most_rounds; ++round) {
        const auto began = turn_began();
        time_point now;
        auto failed = co_await read_clock(began, slot, name, now);
        if (failed != trouble::none)
            co_return failed;
        link::answer got;
        const auto read = [&](std::string& out, call_by) { append_command(out, {"GET", name}); };
        failed = co_await caller_->call(slot, began, read, got);
        if (failed != trouble::none)
            co_return failed;
        const std::string before(got.value().text());
        if (before.empty() && !make)
            co_return trouble::none;
        if (!before.empty() && fingerprint_in(before) != rules->fingerprint()) {
            bool known = true;
            failed = co_await carry_over(began, slot, *rules, name, before, now, known);
            if (failed != trouble::none)
                co_return failed;
            if (!known)
                co_return trouble::malformed;
            continue;
        }
        auto value = before.empty() ? std::optional(fresh_value(*rules, now)) : decode(*rules, before);
        if (!value)
            co_return trouble::malformed;
        advance(*rules, *value, now);
        if (!act(*value, now))
            co_return trouble::none;
        const auto after = encode(*rules, *value);
        const auto lifetime = time_to_live(*rules, *value, now);
        link::answer put;
        const auto write = [&](std::string& out, call_by by) {
            append_replace(out, name, before, after, lifetime, by);
        };
        failed = co_await caller_->call(slot, began, write, put);
        if (failed != trouble::none)
            co_return failed;
        if (put.value().number() == 1) {
            done = true;
            co_return trouble::none;
        }
    }
    co_return trouble::confused;
}

task<trouble> store::inspect(const rule_group& group, std::string_view key, std::optional<key_report>& out)
{
    const auto rules = packed(group);
    out.reset();
    bool ignored = false;
    const change act = [&](key_value& value, time_point now) {
        out = key_report{group.name(), std::string(key), {}, decisions_of(*rules, value, now), {}};
        if (value.blocked_until > now)
            out->blocked_for = value.blocked_until - now;
        return false;
    };
    const auto failed = co_await change_key(group, key, false, act, ignored);
    co_return failed;
}

task<trouble> store::reset(const rule_group& group, std::string_view key, bool& found)
{
    const auto rules = packed(group);
    const change act = [&](key_value& value, time_point) {
        redis::reset(*rules, value);
        return true;
    };
    const auto failed = co_await change_key(group, key, false, act, found);
    co_return failed;
}

task<trouble> store::grant(const rule_group& group, std::string_view key, std::uint64_t n, std::uint64_t& most)
{
    const auto rules = packed(group);
    bool ignored = false;
    most = 0;
    const change act = [&](key_value& value, time_point now) {
        most = redis::grant(*rules, value, n, now);
        return true;
    };
    const auto failed = co_await change_key(group, key, false, act, ignored);
    co_return failed;
}

task<trouble> store::block(const rule_group& group, std::string_view key, microseconds time, bool& done)
{
    const change act = [&](key_value& value, time_point now) {
        value.blocked_until = now + time;
        return true;
    };
    const auto failed = co_await change_key(group, key, true, act, done);
    co_return failed;
}

task<trouble> store::unblock(const rule_group& group, std::string_view key, bool& found)
{
    const change act = [&](key_value& value, time_point now) {
        const bool was_blocked = value.blocked_until > now;
        value.blocked_until = time_point{};
        return was_blocked;
    };
    const auto failed = co_await change_key(group, key, false, act, found);
    co_return failed;
}

task<trouble> store::scan(std::shared_ptr<link> server, const rule_group& group, std::string_view key_prefix,
                          std::vector<std::string>& found)
{
    const auto pattern = pattern_of_group(group.name());
    std::string cursor = "0";
    do {
        const auto write = [&](std::string& to) {
            append_command(to, {"SCAN", cursor, "MATCH", pattern, "COUNT", scan_step});
        };
        const auto got = co_await server->ask(server->turn_began(), write);
        if (const auto failed = caller_->trouble_of(got); failed != trouble::none)
            co_return failed;
        const auto page = got.value();
        if (page.size() != 2)
            co_return trouble::malformed;
        cursor = page[0].text();
        for (std::size_t i = 0; i < page[1].size(); ++i) {
            const auto name = parse_key(page[1][i].text());
            if (name && name->group == group.name() && name->principal.starts_with(key_prefix))
                found.push_back(name->principal);
        }
    } while (cursor != "0");
    co_return trouble::none;
}

// Lists keys by a scan over all keys of every server: for operators, not for requests.
task<trouble> store::list(const rule_group& group, std::string_view key_prefix, std::size_t most,
                          std::vector<key_report>& out)
{
    out.clear();
    std::vector<std::string> found;
    const auto servers = links().servers();
    for (const auto& server : servers) {
        const auto failed = co_await scan(server, group, key_prefix, found);
        if (failed != trouble::none)
            co_return failed;
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end()); // SCAN may return a key twice
    if (found.size() > most)
        found.resize(most);
    for (const auto& key : found) {
        std::optional<key_report> report;
        const auto failed = co_await inspect(group, key, report);
        if (failed != trouble::none)
            co_return failed;
        if (report)
            out.push_back(std::move(*report));
    }
    co_return trouble::none;
}

} // namespace headgate::limiter::redis
