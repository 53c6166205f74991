// Any bytes as a request or a response with what follows: parsed in one piece and byte by byte, the verdicts must be
// the same (A16). Beast must take every head that the scan, the framing and the target's parser admit, and report the
// fields that the scan cuts out by its own rule. What is passed on must be what our own parser reads back. The path's
// canonical form must be stable. Boost's asserts are on here, and none may fire.
#include "gateway/http/answer_head.hpp"
#include "gateway/http/chunk_decoder.hpp"
#include "gateway/http/framing.hpp"
#include "gateway/http/head/head.hpp"
#include "gateway/http/head/head_scan.hpp"
#include "gateway/http/hop_headers.hpp"
#include "gateway/http/target.hpp"
#include "gateway/http/upgrade.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#if defined(BOOST_DISABLE_ASSERTS) || !defined(BOOST_ENABLE_ASSERT_HANDLER)
#error "this target is built with Boost's asserts"
#endif

using namespace headgate::http;

namespace boost {

void assertion_failed(const char* text, const char* function, const char* file, long line)
{
    std::fprintf(stderr, "%s:%ld: %s: assertion `%s` failed\n", file, line, function, text);
    std::abort();
}
void assertion_failed_msg(const char* text, const char*, const char* function, const char* file, long line)
{
    assertion_failed(text, function, file, line);
}

} // namespace boost

namespace {

void must(bool holds, const char* what)
{
    if (holds)
        return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
}

// Every byte in memory of its own, so that the address sanitizer sees a view that was not moved.
template <class Parser>
parse_state feed_bytewise(Parser& parser, std::string_view bytes, std::unique_ptr<char[]>& memory)
{
    auto state = parse_state::need_more;
    for (std::size_t n = 1; n <= bytes.size() && state == parse_state::need_more; ++n) {
        std::unique_ptr<char[]> grown(new char[n]);
        bytes.copy(grown.get(), n);
        memory = std::move(grown);
        state = parser.feed({memory.get(), n});
    }
    return state;
}

void must_be_the_same(const field_list& one, const field_list& other, const char* what)
{
    must(one.lines.size() == other.lines.size() && one.present == other.present, what);
    for (std::size_t i = 0; i < one.lines.size(); ++i) {
        const auto &a = one.lines[i], &b = other.lines[i];
        must(a.name == b.name && a.value == b.value && a.id == b.id, what);
        must(a.underscore == b.underscore && a.verbatim == b.verbatim, what);
        must(!a.verbatim || a.line() == b.line(), what);
    }
}

void must_have_the_same_start(const request_head& one, const request_head& other)
{
    must(one.method == other.method && one.target == other.target && one.method_number == other.method_number,
         "the same method and target");
    must(one.minor_version == other.minor_version, "the same version");
}

void must_have_the_same_start(const response_head& one, const response_head& other)
{
    must(one.status == other.status && one.reason == other.reason, "the same status and reason");
    must(one.minor_version == other.minor_version, "the same version");
}

// A head that is done was parsed by Beast, unless framing refuses it: where the scan admits a head and the parser has
// failed, Beast did not take what framing admits.
template <class Scan, class Parser>
bool parse(std::string_view bytes, Parser& whole)
{
    const head_limits limits{.request_line = 200, .head = 600, .fields = 12};
    whole = Parser(limits);
    Parser bytewise(limits);
    std::unique_ptr<char[]> memory;
    const auto state = whole.feed(bytes);
    must(feed_bytewise(bytewise, bytes, memory) == state, "the state does not depend on the pieces");
    must(bytewise.error() == whole.error(), "the error does not depend on the pieces");
    must_be_the_same(whole.head().fields, bytewise.head().fields, "the fields do not depend on the pieces");
    must_have_the_same_start(whole.head(), bytewise.head());

    Scan scan;
    auto scanned = Parser().head();
    field_list lines;
    must(bytes.empty() || scan.feed(bytes, limits, scanned, &lines) == state, "Beast takes what the scan admits");
    must_be_the_same(whole.head().fields, lines, "Beast reads the fields that the scan has seen");
    must_have_the_same_start(whole.head(), scanned);
    if (state != parse_state::done)
        return false;
    must(bytewise.consumed() == whole.consumed(), "the length does not depend on the pieces");
    return true;
}

struct decoded
{
    std::string body;
    chunk_step::what end = chunk_step::what::need_more;
    http_error error = http_error::none;
    std::size_t trailers = 0;

    bool operator==(const decoded&) const = default;
};

decoded decode(std::string_view bytes, std::size_t piece)
{
    chunk_decoder decoder({.extensions = 60, .trailers = 120, .trailer_fields = 4});
    decoded out;
    for (std::size_t begin = 0; begin < bytes.size() && out.end == chunk_step::what::need_more; begin += piece) {
        const std::string copy(bytes.substr(begin, piece));
        std::string_view input = copy;
        chunk_step step;
        do {
            step = decoder.next(input);
            must(step.consumed <= input.size(), "no more is taken than was given");
            out.body += step.data;
            input.remove_prefix(step.consumed);
        } while (step.kind == chunk_step::what::data);
        out.end = step.kind;
    }
    out.error = decoder.error();
    if (out.end == chunk_step::what::done)
        out.trailers = decoder.trailers().lines.size();
    return out;
}

void check_body(std::string_view bytes)
{
    const auto whole = decode(bytes, bytes.size() + 1);
    must(decode(bytes, 1) == whole && decode(bytes, 3) == whole, "chunks do not depend on the pieces");
}

void check_path(std::string_view path)
{
    for (const bool merge : {false, true}) {
        byte_buffer first, second;
        const std::string once(normalise_path(path, {merge}, first));
        must(normalise_path(once, {merge}, second) == once, "normalising twice changes nothing");
        request_target target;
        must(once == "*" || parse_target(method_id::get, once, target) == http_error::none,
             "a canonical path is a target");
        must(once == "*" || target.path == once, "and all of it is path");
    }
}

void check_request(std::string_view bytes)
{
    request_parser parser;
    request_framing framing;
    request_target target;
    std::string_view host;
    if (!parse<request_scan>(bytes, parser) || frame_request(parser.head(), 1 << 20, framing) != http_error::none)
        return;
    if (parse_target(parser.head().method_number, parser.head().target, target) != http_error::none ||
        effective_host(target, framing.host, host) != http_error::none)
        return;
    upgrade_kind upgrade;
    read_upgrade(parser.head(), framing, upgrade);
    check_path(target.path);
    if (host.empty())
        host = "upstream";

    upstream_head_options options;
    options.path = target.path;
    options.query = target.query;
    options.host = host;
    options.body = framing.body;
    options.connection = &framing.connection;
    options.peer = "192.0.2.1";
    options.scheme = "http";
    options.original_host = host;
    options.forwarded = true;
    options.via = "gate";
    byte_buffer out;
    build_upstream_head(out, parser.head(), options);
    request_parser next;
    request_framing seen;
    must(next.feed(out.view()) == parse_state::done && next.consumed() == out.size(), "the next hop reads one head");
    must(frame_request(next.head(), UINT64_MAX, seen) == http_error::none, "and finds nothing wrong with it");
    must(seen.body == framing.body, "and sees the same body");
    must(passed_through(next.head().fields, "gate"), "and knows where it has been");
    if (framing.body.kind == body_kind::chunked)
        check_body(bytes.substr(parser.consumed()));
}

void check_response(std::string_view bytes)
{
    response_parser parser;
    response_framing framing;
    if (!parse<response_scan>(bytes, parser) ||
        frame_response(method_id::get, parser.head(), framing) != http_error::none)
        return;
    field_lines fields;
    append_client_fields(fields, parser.head(),
                         {.connection = &framing.connection, .date = "Mon, 01 Jan 2024 00:00:00 GMT"});
    const auto head = relay_head(parser.head(), framing, fields);
    byte_buffer out;
    append_http1_head(out, head, frame_answer(head, 1), {});
    response_parser next;
    response_framing seen;
    must(next.feed(out.view()) == parse_state::done && next.consumed() == out.size(), "the client reads one head");
    must(frame_response(method_id::get, next.head(), seen) == http_error::none, "and finds nothing wrong with it");
    must(seen.body == (head.has_body ? frame_answer(head, 1) : body_framing{}), "and sees the same body");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    check_request(bytes);
    check_response(bytes);
    check_body(bytes);
    request_target target;
    if (parse_target(method_id::options, bytes, target) == http_error::none)
        check_path(target.path);
    return 0;
}
