// Helpers for the tests of gateway/http: every message is parsed twice, in one piece and byte by byte in a buffer that
// moves at each step, and both results must be equal (A16).
#pragma once

#include "gateway/http/framing.hpp"
#include "gateway/http/head/head.hpp"
#include "gateway/http/target.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>

namespace headgate::http::test {

inline std::string describe_fields(const field_list& fields)
{
    std::string text;
    for (const auto& line : fields.lines)
        text += "[" + std::string(line.name) + "|" + std::string(line.value) + "|" +
                std::to_string(static_cast<int>(line.id)) + "]";
    return text;
}

template <class Parser>
std::string outcome(parse_state state, const Parser& parser)
{
    if (state != parse_state::done)
        return std::to_string(static_cast<int>(state)) + " " + std::string(describe(parser.error()).code);
    return "done " + std::to_string(parser.consumed()) + describe_fields(parser.head().fields);
}

// Parses byte by byte. Small messages move to new memory at each step, and the old bytes are overwritten.
template <class Parser>
parse_state feed_bytewise(Parser& parser, std::string_view bytes, std::string& memory)
{
    auto state = parse_state::need_more;
    if (bytes.size() > 4096) {
        memory = bytes;
        for (std::size_t n = 1; n <= bytes.size() && state == parse_state::need_more; ++n)
            state = parser.feed(std::string_view(memory).substr(0, n));
        return state;
    }
    std::unique_ptr<char[]> before;
    for (std::size_t n = 1; n <= bytes.size() && state == parse_state::need_more; ++n) {
        std::unique_ptr<char[]> now(new char[n]);
        std::copy_n(bytes.data(), n, now.get());
        if (before)
            std::fill_n(before.get(), n - 1, 'X');
        before = std::move(now);
        state = parser.feed({before.get(), n});
    }
    memory.assign(bytes.data(), bytes.size());
    parser.moved_to(memory.data());
    return state;
}

template <class Parser>
struct parsed
{
    std::string bytes;
    Parser parser;
    parse_state state;
    const auto& head() const { return parser.head(); }
};

template <class Parser>
std::unique_ptr<parsed<Parser>> parse_head(std::string_view bytes, const head_limits& limits = {})
{
    auto whole = std::make_unique<parsed<Parser>>(parsed<Parser>{std::string(bytes), Parser(limits), {}});
    whole->state = whole->parser.feed(whole->bytes);
    Parser bytewise(limits);
    std::string memory;
    const auto state = feed_bytewise(bytewise, bytes, memory);
    INFO(bytes.substr(0, 200));
    CHECK(outcome(state, bytewise) == outcome(whole->state, whole->parser));
    return whole;
}

inline auto parse_request(std::string_view bytes, const head_limits& limits = {})
{
    return parse_head<request_parser>(bytes, limits);
}
inline auto parse_response(std::string_view bytes, const head_limits& limits = {})
{
    return parse_head<response_parser>(bytes, limits);
}

// Returns the code of a request's error, checked in the same order as in the session; "none" when it is valid,
// "need_more" when it is incomplete.
inline std::string request_code(std::string_view bytes, std::uint64_t body_limit = 1 << 20,
                                const head_limits& limits = {})
{
    const auto request = parse_request(bytes, limits);
    if (request->state == parse_state::need_more)
        return "need_more";
    auto error = request->parser.error();
    request_framing framing;
    request_target target;
    std::string_view host;
    if (error == http_error::none)
        error = frame_request(request->head(), body_limit, framing);
    if (error == http_error::none)
        error = parse_target(request->head().method_number, request->head().target, target);
    if (error == http_error::none)
        error = effective_host(target, framing.host, host);
    return std::string(describe(error).code);
}

// A GET with these lines (each ending in CR LF) and a Host.
inline std::string get_with(std::string_view lines)
{
    return "GET / HTTP/1.1\r\nHost: a\r\n" + std::string(lines) + "\r\n";
}
inline std::string post_with(std::string_view lines)
{
    return "POST / HTTP/1.1\r\nHost: a\r\n" + std::string(lines) + "\r\n";
}

} // namespace headgate::http::test
