#include "gateway/limit_fields.hpp"

#include "gateway/exchange.hpp"

namespace headgate {

namespace {

std::int64_t ceil_seconds(limiter::microseconds t) { return (t.count() + 999'999) / 1'000'000; }

// A structured-field String; rule names are checked to be printable when the configuration is loaded.
void append_sf_string(http::byte_buffer& out, std::string_view text)
{
    out.append('"');
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out.append('\\');
        out.append(c);
    }
    out.append('"');
}

template <class Each>
void append_list(http::byte_buffer& out, std::string_view name, const limit_outcome& limit, Each each)
{
    bool first = true;
    for (std::size_t i = 0; i < limit.count; ++i) {
        const auto& rule = *limit.rules[i];
        if (rule.shadow)
            continue;
        out.append(first ? name : std::string_view(", "));
        first = false;
        append_sf_string(out, rule.name);
        each(rule, limit.decisions[i]);
    }
    if (!first)
        out.append("\r\n");
}

} // namespace

std::int64_t retry_after_seconds(limiter::microseconds wait) { return std::max<std::int64_t>(1, ceil_seconds(wait)); }

void append_limit_fields(http::byte_buffer& out, const limit_outcome& limit, const config::answers_config& answers)
{
    if (answers.dialect == config::answer_dialect::off)
        return;
    append_list(out, "RateLimit-Policy: ", limit, [&](const limiter::rule& rule, const limiter::decision&) {
        out.append(";q=");
        out.append_number(rule.count);
        if (rule.kind == limiter::algorithm::concurrency) {
            out.append(";qu=\"concurrent-requests\"");
        } else {
            out.append(";w=");
            out.append_number(static_cast<std::uint64_t>(std::max<std::int64_t>(1, ceil_seconds(rule.period))));
        }
    });
    append_list(out, "RateLimit: ", limit, [&](const limiter::rule&, const limiter::decision& said) {
        out.append(";r=");
        out.append_number(said.remaining);
        const auto until = said.admitted ? said.reset_after : said.retry_after;
        if (until >= limiter::microseconds{0}) {
            out.append(";t=");
            out.append_number(static_cast<std::uint64_t>(ceil_seconds(until)));
        }
    });
}

} // namespace headgate
