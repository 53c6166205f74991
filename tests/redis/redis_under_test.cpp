#include "tests/redis/redis_under_test.hpp"

#include "limiter/redis/client/command.hpp"
#include "limiter/redis/fingerprint.hpp"
#include "limiter/redis/redis_key.hpp"

#include <algorithm>
#include <stdexcept>

namespace headgate::testing {

using redis::call_status;

redis_server& shared_server()
{
    static redis_server server;
    return server;
}

redis_connection::redis_connection(const redis_server& to)
    : context_(redisConnectUnixWithTimeout(to.socket_path().c_str(), timeval{5, 0}), redisFree)
{
    if (!context_ || context_->err)
        throw std::runtime_error("no connection to redis-server");
    redisSetTimeout(context_.get(), timeval{30, 0});
}

redis_connection::reply redis_connection::call(const std::string& command)
{
    void* got = nullptr;
    if (redisAppendFormattedCommand(context_.get(), command.data(), command.size()) != REDIS_OK ||
        redisGetReply(context_.get(), &got) != REDIS_OK)
        throw std::runtime_error("redis-server does not answer");
    return {static_cast<redisReply*>(got), freeReplyObject};
}
redis_connection::reply redis_connection::call(std::initializer_list<std::string_view> words)
{
    std::string command;
    redis::append_command(command, words);
    return call(command);
}
std::string redis_connection::text(std::initializer_list<std::string_view> words)
{
    const auto r = call(words);
    return r->str ? std::string(r->str, r->len) : std::string();
}
long long redis_connection::number(std::initializer_list<std::string_view> words) { return call(words)->integer; }

redis::script with_test_clock(const redis::script& s)
{
    const std::string clock = "local time = redis.call('TIME') local now = time[1] * 1000000 + time[2]\n";
    auto text = s.text;
    const auto at = text.find(clock);
    if (at == text.npos || text.find("'TIME'", at + clock.size()) != text.npos)
        throw std::runtime_error("the script does not read the clock in the one line that tests know");
    text.replace(at, clock.size(), "local now = tonumber(redis.call('GET', 'now'))\n");
    return redis::script(text);
}

redis_under_test::redis_under_test()
    : connection(shared_server()), take_script(with_test_clock(redis::take_script())),
      take_each_script(with_test_clock(redis::take_each_script())),
      correct_script(with_test_clock(redis::correct_script()))
{
    connection.call({"FLUSHALL"});
    for (const auto& text :
         {take_script.text, take_each_script.text, correct_script.text, redis::replace_script().text})
        connection.call({"SCRIPT", "LOAD", text});
}

std::string redis_under_test::key_of(const std::string& group, const std::string& key)
{
    std::string out;
    redis::append_key(out, group, key);
    return out;
}
std::string redis_under_test::value_of(const std::string& group, const std::string& key)
{
    return connection.text({"GET", key_of(group, key)});
}

void redis_under_test::set_clock(time_point now)
{
    connection.call({"SET", "now", std::to_string(now.time_since_epoch().count())});
}

void redis_under_test::define(const std::string& group, std::vector<rule> rules, time_point)
{
    auto to = std::make_shared<defined>();
    to->lineage.name = group;
    to->rules = std::make_unique<rule_group>(to->lineage, 0, std::move(rules));
    to->packed = std::make_unique<redis::packed_group>(*to->rules);
    connection.call({"SET", redis::rules_key(to->packed->fingerprint()), to->packed->description(), "EX", "100000"});
    groups[group] = to;
}

void redis_under_test::convert(const redis::packed_group& to, const std::string& key, std::string_view value,
                               time_point now)
{
    const auto written_under = redis::fingerprint_in(value).value();
    const auto rules = redis::parse_rules(connection.text({"GET", redis::rules_key(written_under)}));
    const redis::detached_rules from(rules.value());
    auto old = redis::decode(from.packed(), value).value();
    advance(from.packed(), old, now);
    const auto converted = convert_value(from.packed(), old, to, now, redis::how_to_carry(written_under, to.rules()));
    std::string command;
    redis::append_replace(command, key, value, encode(to, converted), time_to_live(to, converted, now));
    connection.call(command);
    ++conversions;
}

// In company: between two keys that no test uses otherwise.
redis::call_answer redis_under_test::call_take_each(const redis::chain_part& part, const redis::take_options& how,
                                                    verdict& out, std::vector<decision>& decisions)
{
    std::vector<std::string_view> keys{part.key};
    if (in_company)
        keys = {"before", part.key, "after"};
    const std::size_t place = in_company ? 1 : 0;
    std::string words, argument, command;
    for (const auto key : keys)
        redis::append_word(words, key);
    write_each_argument(argument, part, how);
    append_take_each(command, keys.size(), words, argument, redis::call_by::digest, take_each_script);
    const auto reply = connection.call(command);
    if (reply->type == REDIS_REPLY_ERROR)
        throw std::runtime_error(reply->str);
    if (reply->elements != keys.size())
        throw std::runtime_error("not an answer a key");
    const auto& item = *reply->element[place];
    return read_take({item.str, item.len}, {&part, 1}, how, out, decisions);
}

answer redis_under_test::ask_for(const chain& wanted, time_point now, bool look)
{
    std::lock_guard guard(one_at_a_time);
    set_clock(now);
    std::vector<std::string> keys;
    for (const auto& a : wanted)
        keys.push_back(key_of(a.group, a.key));
    std::vector<redis::chain_part> parts;
    for (std::size_t i = 0; i < wanted.size(); ++i)
        parts.push_back({&packed(wanted[i].group), keys[i], wanted[i].costs});
    redis::take_options how{.look = look, .owner = owner, .guess = wrong_guesses ? now - 24h * 40 : now};
    bool usual = is_usual(parts, how);
    for (int tries = 0; tries < 20; ++tries) {
        verdict v;
        std::vector<decision> result(max_decisions);
        redis::call_answer got;
        if (usual) {
            got = call_take_each(parts[0], how, v, result);
            if (got.status == call_status::unusual) {
                usual = false;
                continue;
            }
        } else {
            std::string command;
            append_take(command, parts, how, redis::call_by::digest, take_script);
            const auto reply = connection.call(command);
            if (reply->type == REDIS_REPLY_ERROR)
                throw std::runtime_error(reply->str);
            // Kept until its value has been read.
            last_reply_text.assign(reply->str, reply->len);
            got = read_take(last_reply_text, parts, how, v, result);
        }
        if (got.status == call_status::boundaries) {
            how.guess = got.now;
        } else if (got.status == call_status::other_rules || got.status == call_status::lapsed) {
            convert(*parts[got.part].group, keys[got.part], got.value, got.now);
        } else if (got.status == call_status::foreign) {
            how.replace = true;
        } else if (got.status != call_status::done) {
            throw std::runtime_error(got.status == call_status::malformed ? "malformed" : "disagreement");
        } else {
            std::size_t n = 0;
            for (const auto& p : parts)
                n += p.group->size();
            result.resize(n);
            return {v.admitted,    v.blocked, v.blocked_part, v.shadow_refused,
                    v.retry_after, v.delay,   v.charged_at,   std::move(result)};
        }
    }
    throw std::runtime_error("no end of trying");
}

void redis_under_test::correct(const ask& wanted, const defined& under, const std::vector<std::uint64_t>& actual,
                               time_point charged_at, time_point now)
{
    std::lock_guard guard(one_at_a_time);
    set_clock(now);
    const auto key = key_of(wanted.group, wanted.key);
    const redis::correction c{
        &packed(wanted.group), key, {under.rules.get(), wanted.key, wanted.costs}, actual, charged_at};
    redis::correct_options how{.owner = owner, .guess = wrong_guesses ? now - 24h * 40 : now};
    for (int tries = 0; tries < 20; ++tries) {
        std::string command;
        append_correct(command, c, how, redis::call_by::digest, correct_script);
        const auto reply = connection.call(command);
        if (reply->type == REDIS_REPLY_ERROR)
            throw std::runtime_error(reply->str);
        const auto got = redis::read_correct({reply->str, reply->len});
        if (got.status == call_status::done)
            return;
        if (got.status == call_status::boundaries)
            how.guess = got.now;
        else if (got.status == call_status::other_rules || got.status == call_status::lapsed)
            convert(*c.group, key, got.value, got.now);
        else if (got.status == call_status::foreign)
            how.replace = true;
        else
            throw std::runtime_error("malformed");
    }
    throw std::runtime_error("no end of trying");
}

void redis_under_test::correct(const ask& wanted, const std::vector<std::uint64_t>& actual, time_point charged_at,
                               time_point now)
{
    correct(wanted, *groups.at(wanted.group), actual, charged_at, now);
}

void redis_under_test::renew(const std::string& group, const std::string& key, time_point now)
{
    set_clock(now);
    std::string command;
    redis::append_renew(command, packed(group), key_of(group, key), {.owner = owner, .guess = now},
                        redis::call_by::digest, correct_script);
    connection.call(command);
}

void redis_under_test::give_back(const chain& wanted, time_point charged_at, time_point now)
{
    for (const auto& a : wanted)
        correct(a, {}, charged_at, now);
}

answer redis_under_test::reserve(const chain& wanted, time_point now, reservation& id)
{
    id = 0;
    auto result = take(wanted, now);
    if (!result.admitted)
        return result;
    held kept{wanted, {}, result.charged_at};
    for (const auto& a : wanted)
        kept.under.push_back(groups.at(a.group));
    id = ++last_reservation;
    reservations.emplace(id, std::move(kept));
    return result;
}

bool redis_under_test::settle(reservation id, const std::vector<std::uint64_t>& actual, time_point now)
{
    const auto found = reservations.find(id);
    if (found == reservations.end())
        return false;
    const auto kept = std::move(found->second);
    reservations.erase(found);
    std::size_t from = 0;
    for (std::size_t i = 0; i < kept.wanted.size(); ++i) {
        const auto n = std::min(actual.size() - from, kept.under[i]->rules->size());
        const auto at = actual.begin() + static_cast<std::ptrdiff_t>(from);
        correct(kept.wanted[i], *kept.under[i], {at, at + static_cast<std::ptrdiff_t>(n)}, kept.charged_at, now);
        from += n;
    }
    return true;
}

template <class Act>
bool redis_under_test::change(const std::string& group, const std::string& key, time_point now, bool make, Act act)
{
    if (!groups.contains(group))
        return false;
    const auto& by = packed(group);
    for (int tries = 0; tries < 20; ++tries) {
        const auto before = value_of(group, key);
        if (before.empty() && !make)
            return false;
        if (!before.empty() && redis::fingerprint_in(before) != by.fingerprint()) {
            convert(by, key_of(group, key), before, now);
            continue;
        }
        auto value = before.empty() ? fresh_value(by, now) : redis::decode(by, before).value();
        advance(by, value, now);
        if (!act(value, now))
            return false;
        std::string command;
        redis::append_replace(command, key_of(group, key), before, encode(by, value), time_to_live(by, value, now));
        if (connection.call(command)->integer == 1)
            return true;
    }
    throw std::runtime_error("no end of trying");
}

std::uint64_t redis_under_test::grant(const std::string& group, const std::string& key, std::uint64_t n, time_point now)
{
    std::uint64_t most = 0;
    change(group, key, now, false, [&](redis::key_value& value, time_point at) {
        most = redis::grant(packed(group), value, n, at);
        return true;
    });
    return most;
}

bool redis_under_test::reset(const std::string& group, const std::string& key, time_point now)
{
    return change(group, key, now, false, [&](redis::key_value& value, time_point) {
        redis::reset(packed(group), value);
        return true;
    });
}

bool redis_under_test::block(const std::string& group, const std::string& key, time_point until, time_point now)
{
    return change(group, key, now, true, [&](redis::key_value& value, time_point) {
        value.blocked_until = until;
        return true;
    });
}

bool redis_under_test::unblock(const std::string& group, const std::string& key, time_point now)
{
    return change(group, key, now, false, [&](redis::key_value& value, time_point at) {
        const bool was_blocked = value.blocked_until > at;
        value.blocked_until = time_point{};
        return was_blocked;
    });
}

std::optional<key_report> redis_under_test::inspect(const std::string& group, const std::string& key, time_point now)
{
    std::optional<key_report> out;
    change(group, key, now, false, [&](redis::key_value& value, time_point at) {
        out = key_report{group, key, {}, decisions_of(packed(group), value, at), {}};
        if (value.blocked_until > at)
            out->blocked_for = value.blocked_until - at;
        return false;
    });
    return out;
}

std::vector<key_report> redis_under_test::list(const std::string& group, const std::string& prefix, time_point now)
{
    std::vector<key_report> out;
    const auto found = connection.call({"KEYS", redis::pattern_of_group(group)});
    for (std::size_t i = 0; i < found->elements; ++i) {
        const auto name = redis::parse_key({found->element[i]->str, found->element[i]->len}).value();
        if (!name.principal.starts_with(prefix))
            continue;
        if (auto result = inspect(group, name.principal, now))
            out.push_back(std::move(*result));
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    return out;
}

std::string redis_under_test::key_for_ever()
{
    const auto keys = connection.call({"KEYS", "*"});
    for (std::size_t i = 0; i < keys->elements; ++i) {
        const std::string key(keys->element[i]->str, keys->element[i]->len);
        if (key != "now" && connection.number({"PTTL", key}) < 0)
            return key;
    }
    return {};
}

const std::vector<named_limiter>& limiters_under_test()
{
    static const std::vector<named_limiter> all{{"redis", [] { return std::make_unique<redis_under_test>(); }}};
    return all;
}

} // namespace headgate::testing
