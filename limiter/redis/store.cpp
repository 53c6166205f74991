#include "limiter/redis/store.hpp"

#include "limiter/redis/command.hpp"
#include "limiter/redis/fingerprint.hpp"

#include <algorithm>
#include <array>

namespace headgate::limiter::redis {

namespace {

constexpr int most_rounds = 8;                          // of one question, before it is given up
constexpr std::string_view rules_lifetime = "34560000"; // 400 days: longer than any value written under them

} // namespace

std::string_view name_of(trouble t)
{
    constexpr std::string_view names[] = {"none",       "timeout", "unreachable", "broken",
                                          "overloaded", "refused", "malformed",   "confused"};
    return names[static_cast<std::size_t>(t)];
}

class store::spare_text
{
public:
    explicit spare_text(std::vector<std::string>& from) : from_(from)
    {
        if (from_.empty())
            return;
        text = std::move(from_.back());
        from_.pop_back();
        text.clear();
    }
    ~spare_text() { from_.push_back(std::move(text)); }
    spare_text(const spare_text&) = delete;
    spare_text& operator=(const spare_text&) = delete;

    std::string text;

private:
    std::vector<std::string>& from_;
};

store::store(std::shared_ptr<link_source> links, holder who, key_form form, script_set scripts)
    : links_(std::move(links)), who_(who), form_(form), scripts_(scripts)
{}

store::~store() = default;

store::shared_rules store::packed(const rule_group& group)
{
    auto& known = packed_[&group];
    if (!known)
        known = std::make_shared<const packed_group>(group);
    publish(*known);
    return known;
}

// Another gateway, with other rules, will want to know under which ones a value was written. Once a connection: Redis
// may have been emptied meanwhile.
void store::publish(const packed_group& rules)
{
    auto& to = published_[rules.fingerprint()];
    const auto& now = links_->current();
    const std::pair connection(links_->generation(), now.seen().connected);
    if (to == connection || now.now() != link::state::ready)
        return;
    to = connection;
    start(publish_later(rules_key(rules.fingerprint()), rules.description()));
}

task<void> store::publish_later(std::string key, std::string description)
{
    const auto keep = links_;
    auto& to = keep->current();
    const auto write = [&](std::string& out) { append_command(out, {"SET", key, description, "EX", rules_lifetime}); };
    co_await to.ask(to.turn_began(), write);
}

trouble store::trouble_of(const link::answer& got)
{
    switch (got.failed) {
    case failure::timeout:
        return trouble::timeout;
    case failure::unreachable:
        return trouble::unreachable;
    case failure::broken:
        return trouble::broken;
    case failure::overloaded:
        return trouble::overloaded;
    case failure::none:
        break;
    }
    if (!got.said().is_error())
        return trouble::none;
    last_error_ = classify(got.said().text());
    ++seen_.errors;
    if (is_wrong_server(last_error_))
        links_->suspect(last_error_);
    return trouble::refused;
}

// ---- a chain

task<trouble> store::ask_chain(std::span<const part> parts, bool look, std::span<decision> decisions, verdict& out)
{
    const auto began = turn_began();
    std::array<shared_rules, max_parts> rules;
    std::array<asked_part, max_parts> asked;
    std::array<std::size_t, max_parts + 1> ends{};
    spare_text keys(spare_);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        rules[i] = packed(*parts[i].group);
        append_key(keys.text, parts[i].group->name(), parts[i].key, form_);
        ends[i + 1] = keys.text.size();
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
        asked[i] = {rules[i].get(), std::string_view(keys.text).substr(ends[i], ends[i + 1] - ends[i]), parts[i].costs};
        out.groups[i] = parts[i].group;
    }
    const std::span<const asked_part> all(asked.data(), parts.size());
    take_options how{.look = look, .who = who_};
    how.guess = redis_time_ == time_point{}
                    ? std::chrono::time_point_cast<microseconds>(std::chrono::system_clock::now())
                    : redis_time_ + std::chrono::duration_cast<microseconds>(began - redis_time_at_);
    for (int round = 0; round < most_rounds; ++round) {
        link::answer got;
        const auto write = [&](std::string& to, call_by by) { append_take(to, all, how, by, *scripts_.take); };
        const auto failed = co_await call(began, write, got);
        if (failed != trouble::none)
            co_return failed;
        const auto said = read_take(got.said().text(), all, how, out, decisions);
        redis_time_ = said.now;
        redis_time_at_ = turn_began();
        bool known = true;
        trouble carried = trouble::none;
        switch (said.status) {
        case call_status::done:
            co_return trouble::none;
        case call_status::boundaries:
            how.guess = said.now;
            break;
        case call_status::other_rules:
            carried = co_await carry_over(began, *rules[said.part], std::string(asked[said.part].key),
                                          std::string(said.value), said.now, known);
            if (carried != trouble::none)
                co_return carried;
            how.replace = !known;
            break;
        case call_status::foreign:
            ++seen_.foreign;
            how.replace = true;
            break;
        case call_status::disagreement:
            ++seen_.disagreements;
            co_return trouble::malformed;
        case call_status::malformed:
            co_return trouble::malformed;
        }
    }
    co_return trouble::confused;
}

// ---- other rules

task<trouble> store::find_rules(steady_time began, std::uint64_t fingerprint,
                                std::shared_ptr<const detached_rules>& out)
{
    if (const auto known = other_rules_.find(fingerprint); known != other_rules_.end()) {
        out = known->second;
        co_return trouble::none;
    }
    const auto key = rules_key(fingerprint);
    const auto write = [&](std::string& to) { append_command(to, {"GET", key}); };
    const auto got = co_await links_->current().ask(began, write);
    if (const auto failed = trouble_of(got); failed != trouble::none)
        co_return failed;
    auto rules = parse_rules(got.said().text());
    if (!rules)
        co_return trouble::none; // nobody knows them any more
    out = std::make_shared<const detached_rules>(std::move(*rules));
    if (other_rules_.size() >= 1000)
        other_rules_.clear();
    other_rules_[fingerprint] = out;
    co_return trouble::none;
}

// What the key has used is carried over to the rules it is judged by from now on. When somebody was faster, the
// question is simply asked again. `known`: false when the rules it was written under are lost, so that nothing can be
// carried.
task<trouble> store::carry_over(steady_time began, const packed_group& to, std::string key, std::string value,
                                time_point now, bool& known)
{
    const auto fingerprint = fingerprint_in(value);
    std::shared_ptr<const detached_rules> from;
    if (fingerprint) {
        const auto failed = co_await find_rules(began, *fingerprint, from);
        if (failed != trouble::none)
            co_return failed;
    }
    auto old = from ? decode(from->packed(), value) : std::nullopt;
    known = old.has_value();
    if (!known) {
        ++seen_.lost_rules;
        co_return trouble::none;
    }
    const auto at = advance(from->packed(), *old, now);
    const auto converted = convert_value(from->packed(), *old, to, at, how_to_carry(*fingerprint, to.rules()));
    const auto after = encode(to, converted);
    const auto lifetime = time_to_live(to, converted, at);
    ++seen_.conversions;
    link::answer got;
    const auto write = [&](std::string& out, call_by by) { append_replace(out, key, value, after, lifetime, by); };
    const auto failed = co_await call(began, write, got);
    co_return failed;
}

// ---- corrections

task<trouble> store::correct(const rule_group& group, const part& as_charged, std::span<const std::uint64_t> actual,
                             time_point charged_at)
{
    const auto began = turn_began();
    const auto rules = packed(group);
    spare_text key(spare_);
    append_key(key.text, group.name(), as_charged.key, form_);
    const correction c{rules.get(), key.text, as_charged, actual, charged_at};
    correct_options how{.who = who_, .guess = charged_at};
    for (int round = 0; round < most_rounds; ++round) {
        link::answer got;
        const auto write = [&](std::string& to, call_by by) { append_correct(to, c, how, by, *scripts_.correct); };
        const auto failed = co_await call(began, write, got);
        if (failed != trouble::none)
            co_return failed;
        const auto said = read_correct(got.said().text());
        bool known = true;
        trouble carried = trouble::none;
        switch (said.status) {
        case call_status::done:
            co_return trouble::none;
        case call_status::boundaries:
            how.guess = said.now;
            break;
        case call_status::other_rules:
            carried = co_await carry_over(began, *rules, key.text, std::string(said.value), said.now, known);
            if (carried != trouble::none)
                co_return carried;
            how.replace = !known;
            break;
        case call_status::foreign:
            ++seen_.foreign;
            how.replace = true;
            break;
        default:
            co_return trouble::malformed;
        }
    }
    co_return trouble::confused;
}

task<trouble> store::renew(const rule_group& group, std::string_view key)
{
    const auto began = turn_began();
    const auto rules = packed(group);
    spare_text name(spare_);
    append_key(name.text, group.name(), key, form_);
    const correct_options how{.who = who_, .guess = redis_time_};
    link::answer got;
    const auto write = [&](std::string& to, call_by by) {
        append_renew(to, *rules, name.text, how, by, *scripts_.correct);
    };
    const auto failed = co_await call(began, write, got);
    co_return failed;
}

} // namespace headgate::limiter::redis
