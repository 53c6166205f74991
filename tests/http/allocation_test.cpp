// Once its buffers have grown, gateway/http processes a whole request without a heap allocation. Every allocation of
// this executable is counted.
#include "gateway/http/chunk_decoder.hpp"
#include "gateway/http/client_address.hpp"
#include "gateway/http/framing.hpp"
#include "gateway/http/head/head.hpp"
#include "gateway/http/hop_headers.hpp"
#include "gateway/http/routes/router.hpp"
#include "gateway/http/target.hpp"
#include "gateway/upstream/pool.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

using namespace headgate::http;

namespace {

std::atomic<std::size_t> allocations{0};

} // namespace

void* operator new(std::size_t size)
{
    ++allocations;
    if (void* memory = std::malloc(size))
        return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("http: a request and its answer allocate nothing once warm")
{
    const std::string request =
        "POST /a/%2e%2E/api/7/x?q=1 HTTP/1.1\r\nHost: API.example.com:80\r\nConnection: x-mine\r\nX-Mine: 1\r\n"
        "X-Forwarded-For: 192.0.2.7, 10.0.0.1\r\nTransfer-Encoding: chunked\r\nAccept: */*\r\n\r\n"
        "5;a=b\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n";
    const std::string response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer: x\r\nKeep-Alive: 5\r\n\r\nhello";
    const router routes({{.hosts = {"*.example.com"}, .path = "/api/{id}/*", .methods = {"POST"}}, {.path = "/*"}});
    header_edits edits;
    edits.set("X-Env", "prod");
    client_address_rules rules;
    CHECK(rules.trusted_proxies.add("10.0.0.0/8"));
    request_parser parser;
    response_parser answer;
    chunk_decoder chunks;
    byte_buffer scratch, up, down;
    field_lines fields;
    upstream_pool pool(2, {});
    route_match match;

    const auto exchange = [&] {
        parser.reset();
        answer.reset();
        chunks.reset();
        up.clear();
        down.clear();
        request_framing framing;
        request_target target;
        std::string_view host;
        bool good = parser.feed(request) == parse_state::done;
        good &= frame_request(parser.head(), 1000, framing) == http_error::none;
        good &= parse_target(parser.head().method_number, parser.head().target, target) == http_error::none;
        good &= effective_host(target, framing.host, host) == http_error::none;
        const auto path = normalise_path(target.path, {}, scratch);
        routes.find({host, path, parser.head().method_number, parser.head().method, &parser.head().fields}, match);
        good &= match.route == 0 && match.params()[0].value == "7";
        const auto client = find_client_address(*parse_hop("10.0.0.9"), parser.head().fields, rules);
        address_text text;
        good &= format_address(client.address, text) == "192.0.2.7";
        const auto ticket = pool.checkout({});
        upstream_head_options options;
        options.path = path;
        options.query = target.query;
        options.host = host;
        options.body = framing.body;
        options.connection = &framing.connection;
        options.peer = "10.0.0.9";
        options.edits = &edits;
        options.via = "gate";
        build_upstream_head(up, parser.head(), options);
        auto body = std::string_view(request).substr(parser.consumed());
        auto step = chunks.next(body);
        good &= step.data == "hello";
        good &= chunks.next(body.substr(step.consumed)).kind == chunk_step::what::done;
        good &= answer.feed(response) == parse_state::done;
        response_framing back;
        good &= frame_response(parser.head().method_number, answer.head(), back) == http_error::none;
        fields.clear();
        append_client_fields(fields, answer.head(), {.connection = &back.connection, .date = "now"});
        const auto head = relay_head(answer.head(), back, fields);
        append_http1_head(down, head, frame_answer(head, 1), {});
        append_error_body(down, http_error::no_route, "r");
        pool.give_back(ticket.connection, {});
        return good;
    };
    CHECK(exchange());
    CHECK(exchange()); // the second server's first connection
    const auto before = allocations.load();
    bool good = true;
    for (int i = 0; i < 100; ++i)
        good &= exchange();
    const auto after = allocations.load();
    CHECK(good);
    CHECK(after == before);
}
