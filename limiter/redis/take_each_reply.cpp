// Reads what take_each.lua says of one key, as the reply of take.lua that says the same.
#include "limiter/redis/call_reply.hpp"
#include "limiter/redis/take_each_call.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace headgate::limiter::redis {

namespace {

constexpr std::size_t most_numbers = header_numbers + 2 * most_usual_rules;

enum item : std::uint64_t
{
    refused_new,
    admitted_new,
    other_windows,
    for_take_lua,
};

} // namespace

call_answer read_take_each(const each_answer& said, const asked_part& asked, const take_options& how, verdict& out,
                           std::span<decision> decisions)
{
    if (said.what == each_answer::kind::alone)
        return read_take(said.text, {&asked, 1}, how, out, decisions);
    const auto size = asked.group->numbers() * number_bytes;
    const bool has_value = said.what == each_answer::kind::value;
    const bool refused = has_value ? said.text.size() == size + 1 && said.text.back() == 0 : said.number == refused_new;
    if (said.now > largest || asked.group->numbers() > most_numbers)
        return {};
    if (has_value ? said.text.size() != size && !refused : said.number > for_take_lua)
        return {};
    if (!has_value && said.number > admitted_new) {
        const time_point now{microseconds{static_cast<std::int64_t>(said.now)}};
        return {.status = said.number == other_windows ? call_status::boundaries : call_status::unusual, .now = now};
    }

    std::array<char, 2 + number_bytes * most_numbers> text;
    number_writer to(text.data());
    to.byte(static_cast<unsigned>(refused ? reply_status::refused : reply_status::done));
    number_reader found(said.text);
    found.number(); // the fingerprint
    to.number(std::max(said.now, has_value ? found.number() : 0));
    to.byte(has_value ? 1 : 0);
    auto* end = to.end();
    if (has_value) {
        const auto state = size - 2 * number_bytes;
        std::memcpy(end, said.text.data() + 2 * number_bytes, state);
        end += state;
    }
    return read_take({text.data(), static_cast<std::size_t>(end - text.data())}, {&asked, 1}, how, out, decisions);
}

} // namespace headgate::limiter::redis
