#include "gateway/answers/refusal_body.hpp"

#include "gateway/answers/limit_fields.hpp"
#include "gateway/answers/limit_outcome.hpp"
#include "gateway/compiled/answers.hpp"
#include "gateway/http/errors.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace headgate {

namespace {

void append_violated(http::byte_buffer& out, const limit_outcome& limit)
{
    std::string_view before = "\"";
    for (std::size_t i = 0; i < limit.count; ++i) {
        if (limit.decisions[i].admitted || limit.rules[i]->shadow)
            continue;
        out.append(std::exchange(before, ", \""), limit.rules[i]->name, '"'); // needs no escaping: config's check_name
    }
}

void append_problem(http::byte_buffer& out, const limit_outcome& limit, std::uint64_t status)
{
    if (limit.blocked.rules) { // by an operator: no quota is exceeded
        out.append(R"({"type":"urn:headgate:error:blocked","title":"Blocked for now","status":)", http::decimal{status},
                   "}\n");
        return;
    }
    constexpr std::string_view used_up = R"(quota-exceeded","title":"Request quota exceeded","status":)",
                               reduced =
                                   R"(temporary-reduced-capacity","title":"Temporarily reduced capacity","status":)";
    out.append(R"({"type":"https://iana.org/assignments/http-problem-types#)", limit.degraded ? reduced : used_up,
               http::decimal{status}, ",\"violated-policies\":[");
    append_violated(out, limit);
    out.append("]}\n");
}

// A placeholder's value that is made from a number.
struct number_text
{
    explicit number_text(std::uint64_t number)
        : size(static_cast<std::size_t>(std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr -
                                        digits.data()))
    {}
    std::string_view view() const { return {digits.data(), size}; }

    std::array<char, 20> digits;
    std::size_t size;
};

// Appends the operator's own body. When several rules refused, it names the one with the longest wait: after that wait
// the others admit the request too.
void append_own_body(http::byte_buffer& out, const body_template& body, const limit_outcome& limit,
                     std::optional<std::uint64_t> wait)
{
    const number_text seconds(wait.value_or(0));
    body_template::values known{.rule = "blocked", .limit = "-", .wait = wait ? seconds.view() : "-"};
    const auto i = find_refusing_rule(limit);
    if (limit.blocked.rules || i == no_rule) // an operator's block has neither a rule nor a limit
        return body.append_to(out, known);
    const auto* text = limit.texts[i];
    const number_text count(limit.rules[i]->count);
    const bool in_words = text != nullptr && text->rule == limit.rules[i];
    known.rule = limit.rules[i]->name;
    known.limit = in_words ? std::string_view(text->limit_words) : count.view();
    body.append_to(out, known);
}

} // namespace

unsigned refusal_status(const limit_outcome& limit, const config::answers_config& answers)
{
    if (limit.blocked.rules)
        return 403;
    return limit.degraded ? 503U : static_cast<unsigned>(answers.status);
}

void append_refusal_body(http::byte_buffer& out, const compiled_answers& answers, const limit_outcome& limit,
                         unsigned status, std::optional<std::uint64_t> wait)
{
    if (answers.body)
        append_own_body(out, *answers.body, limit, wait);
    else
        append_problem(out, limit, status);
}

} // namespace headgate
