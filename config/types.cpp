#include "config/types.hpp"

namespace headgate::config {

namespace {

constexpr auto no_max = std::numeric_limits<std::uint64_t>::max();

json text_schema(const char* pattern = nullptr)
{
    json out{{"type", "string"}};
    if (pattern)
        out["pattern"] = pattern;
    return out;
}

// A number may be written as a number or as text, which may contain ${VARIABLE}.
json text_or_number() { return {{"type", {"string", "integer"}}}; }

template <class Show>
std::string range_text(const key_options& a, Show show)
{
    if (a.min > 0 && a.max != no_max)
        return show(a.min) + " to " + show(a.max);
    if (a.max != no_max)
        return "at most " + show(a.max);
    if (a.min > 0)
        return "at least " + show(a.min);
    return {};
}

template <class Show>
std::string outside_bounds(std::uint64_t value, const key_options& a, Show show)
{
    return value < a.min || value > a.max ? "it must be " + range_text(a, show) : std::string{};
}

std::string show_count(std::uint64_t n) { return std::to_string(n); }
std::string show_duration(std::uint64_t us) { return to_text(duration(static_cast<std::int64_t>(us))); }
std::string show_size(std::uint64_t bytes) { return to_text(byte_size{bytes}); }

} // namespace

// ---- bool

parsed<bool> scalar<bool>::parse(const std::string& text, const key_options&)
{
    if (text == "true" || text == "false")
        return {text == "true", {}};
    return {false, "it must be true or false"};
}
json scalar<bool>::show(const bool& value, const key_options&) { return value; }
json scalar<bool>::schema(const key_options&) { return {{"type", "boolean"}}; }
std::string scalar<bool>::type_name(const key_options&) { return "true or false"; }
std::string scalar<bool>::bounds(const key_options&) { return {}; }

// ---- counts

parsed<std::uint64_t> scalar<std::uint64_t>::parse(const std::string& text, const key_options& a)
{
    if (a.zero_name && text == a.zero_name)
        return {0, {}};
    auto number = text;
    if (a.percent) {
        if (number.empty() || number.back() != '%')
            return {0, "it must be a percentage, such as 10%"};
        number.pop_back();
    }
    auto got = parse_count(number);
    if (got)
        got.complaint = outside_bounds(got.value, a, show_count);
    if (!got && a.zero_name)
        got.complaint += std::string(", or `") + a.zero_name + "`";
    return got;
}
json scalar<std::uint64_t>::show(const std::uint64_t& value, const key_options& a)
{
    if (a.zero_name && value == 0)
        return a.zero_name;
    return a.percent ? json(std::to_string(value) + "%") : json(value);
}
json scalar<std::uint64_t>::schema(const key_options& a)
{
    if (a.percent)
        return text_schema("^[0-9]+%$");
    json number{{"type", "integer"}, {"minimum", a.min}};
    if (a.max != no_max)
        number["maximum"] = a.max;
    return {{"anyOf", {number, text_schema(a.zero_name ? nullptr : "\\$\\{")}}};
}
std::string scalar<std::uint64_t>::type_name(const key_options& a)
{
    const std::string number = a.percent ? "percentage" : "whole number";
    return a.zero_name ? number + " or `" + a.zero_name + "`" : number;
}
std::string scalar<std::uint64_t>::bounds(const key_options& a) { return range_text(a, show_count); }

// ---- text

parsed<std::string> scalar<std::string>::parse(const std::string& text, const key_options& a)
{
    if (text.empty())
        return {{}, "it is empty; remove the key instead"};
    return {text, a.check ? a.check(text) : std::string{}};
}
json scalar<std::string>::show(const std::string& value, const key_options&) { return value; }
json scalar<std::string>::schema(const key_options&) { return text_or_number(); }
std::string scalar<std::string>::type_name(const key_options&) { return "text"; }
std::string scalar<std::string>::bounds(const key_options&) { return {}; }

parsed<secret> scalar<secret>::parse(const std::string& text, const key_options&)
{
    return {secret(text), text.empty() ? "it is empty" : ""};
}
json scalar<secret>::show(const secret& value, const key_options&) { return value.empty() ? "" : "***"; }
json scalar<secret>::schema(const key_options&) { return text_schema(); }
std::string scalar<secret>::type_name(const key_options&) { return "secret: `${VARIABLE}`, `file:/path` or text"; }
std::string scalar<secret>::bounds(const key_options&) { return {}; }

// ---- units

parsed<duration> scalar<duration>::parse(const std::string& text, const key_options& a)
{
    if (a.unlimited && text == "unlimited")
        return {unlimited_duration, {}};
    auto got = parse_duration(text);
    if (got)
        got.complaint = outside_bounds(static_cast<std::uint64_t>(got.value.count()), a, show_duration);
    if (!got && a.unlimited)
        got.complaint += ", or `unlimited`";
    return got;
}
json scalar<duration>::show(const duration& value, const key_options&)
{
    return value == unlimited_duration ? "unlimited" : to_text(value);
}
json scalar<duration>::schema(const key_options& a)
{
    return text_schema(a.unlimited ? "^(unlimited|0|[0-9]+ *(us|ms|s|m|min|h|d)|.*\\$\\{.*)$"
                                   : "^(0|[0-9]+ *(us|ms|s|m|min|h|d)|.*\\$\\{.*)$");
}
std::string scalar<duration>::type_name(const key_options& a)
{
    return std::string("duration (us, ms, s, m, h, d)") + (a.unlimited ? " or `unlimited`" : "");
}
std::string scalar<duration>::bounds(const key_options& a) { return range_text(a, show_duration); }

parsed<byte_size> scalar<byte_size>::parse(const std::string& text, const key_options& a)
{
    if (a.unlimited && text == "unlimited")
        return {byte_size::unlimited(), {}};
    auto got = parse_size(text);
    if (got)
        got.complaint = outside_bounds(got.value.bytes, a, show_size);
    if (!got && a.unlimited)
        got.complaint += ", or `unlimited`";
    return got;
}
json scalar<byte_size>::show(const byte_size& value, const key_options&) { return to_text(value); }
json scalar<byte_size>::schema(const key_options& a)
{
    return text_schema(a.unlimited ? "^(unlimited|[0-9]+ *([KMG]i?)?B|.*\\$\\{.*)$"
                                   : "^([0-9]+ *([KMG]i?)?B|.*\\$\\{.*)$");
}
std::string scalar<byte_size>::type_name(const key_options& a)
{
    return std::string("size (B, KiB, MiB, GiB, KB, MB, GB)") + (a.unlimited ? " or `unlimited`" : "");
}
std::string scalar<byte_size>::bounds(const key_options& a) { return range_text(a, show_size); }

// ---- addresses

parsed<network> scalar<network>::parse(const std::string& text, const key_options&) { return parse_network(text); }
json scalar<network>::show(const network& value, const key_options&) { return value.text; }
json scalar<network>::schema(const key_options&) { return text_schema(); }
std::string scalar<network>::type_name(const key_options&) { return "network such as 10.0.0.0/8"; }
std::string scalar<network>::bounds(const key_options&) { return {}; }

parsed<host_port> scalar<host_port>::parse(const std::string& text, const key_options& a)
{
    auto got = parse_host_port(text, a.host_name);
    if (got && got.value.port < a.min)
        got.complaint = "the port must be " + std::to_string(a.min) + " to 65535";
    return got;
}
json scalar<host_port>::show(const host_port& value, const key_options&) { return value.text(); }
json scalar<host_port>::schema(const key_options&) { return text_schema(); }
std::string scalar<host_port>::type_name(const key_options& a) { return a.host_name ? "host:port" : "address:port"; }
std::string scalar<host_port>::bounds(const key_options&) { return {}; }

parsed<redis_url> scalar<redis_url>::parse(const std::string& text, const key_options&)
{
    return parse_redis_url(text);
}
json scalar<redis_url>::show(const redis_url& value, const key_options&) { return value.text; }
json scalar<redis_url>::schema(const key_options&) { return text_schema(); }
std::string scalar<redis_url>::type_name(const key_options&) { return "Redis URL"; }
std::string scalar<redis_url>::bounds(const key_options&) { return {}; }

// ---- limits

parsed<limit_value> scalar<limit_value>::parse(const std::string& text, const key_options&)
{
    return parse_limit(text);
}
json scalar<limit_value>::show(const limit_value& value, const key_options&) { return value.text; }
json scalar<limit_value>::schema(const key_options&)
{
    auto out = text_or_number();
    out["pattern"] = "^ *([0-9]+ *((/ *|per +)([0-9]+ *)?"
                     "(us|ms|s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?|months?))?|unlimited|blocked) *$"
                     "|\\$\\{";
    return out;
}
std::string scalar<limit_value>::type_name(const key_options&) { return "limit such as 60/minute or 100 per 90s"; }
std::string scalar<limit_value>::bounds(const key_options&) { return "1 to 2^53, a period of at most a year"; }

parsed<outcome_match> scalar<outcome_match>::parse(const std::string& text, const key_options&)
{
    return parse_outcome(text);
}
json scalar<outcome_match>::show(const outcome_match&, const key_options&) { return nullptr; }
json scalar<outcome_match>::schema(const key_options&) { return text_or_number(); }
std::string scalar<outcome_match>::type_name(const key_options&)
{
    return "status, 5xx, 400-499, upstream_failure or timeout";
}
std::string scalar<outcome_match>::bounds(const key_options&) { return "100 to 599"; }

parsed<delay_value> scalar<delay_value>::parse(const std::string& text, const key_options&)
{
    using form = delay_value::form;
    if (text == "all" || text == "none")
        return {{text == "all" ? form::all : form::none, 0}, {}};
    const auto got = parse_count(text);
    return {{form::after, got.value}, got ? "" : "it must be a whole number, `all` or `none`"};
}
json scalar<delay_value>::show(const delay_value& value, const key_options&)
{
    using form = delay_value::form;
    return value.what == form::all ? json("all") : value.what == form::none ? json("none") : json(value.after);
}
json scalar<delay_value>::schema(const key_options&) { return text_or_number(); }
std::string scalar<delay_value>::type_name(const key_options&) { return "whole number, `all` or `none`"; }
std::string scalar<delay_value>::bounds(const key_options&) { return {}; }

// ---- choices

std::string choice_names(const std::string_view* names, std::size_t count)
{
    std::string out;
    for (std::size_t i = 0; i < count; ++i)
        out += (i == 0 ? "" : i + 1 == count ? " or " : ", ") + std::string(names[i]);
    return out;
}

parsed<std::size_t> parse_choice(const std::string& text, const std::string_view* names, std::size_t count)
{
    std::vector<std::string> all;
    for (std::size_t i = 0; i < count; ++i) {
        if (text == names[i])
            return {i, {}};
        all.emplace_back(names[i]);
    }
    return {0, "it must be " + choice_names(names, count) + did_you_mean(text, all)};
}

} // namespace headgate::config
