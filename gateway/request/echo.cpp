#include "gateway/request/echo.hpp"

#include "gateway/request/request.hpp"
#include "gateway/request/respond.hpp"
#include "gateway/worker.hpp"

namespace headgate {

namespace {

void append_member(http::byte_buffer& out, std::string_view name, std::string_view value)
{
    out.append("\"");
    http::append_json_escaped(out, name);
    out.append("\":\"");
    http::append_json_escaped(out, value);
    out.append("\"");
}

void append_echo(http::byte_buffer& out, const request& r, std::uint64_t body_bytes)
{
    const auto& received = r.received;
    http::address_text address;
    out.append("{");
    append_member(out, "method", r.head().method);
    out.append(",");
    append_member(out, "path", received.path);
    out.append(",");
    append_member(out, "query", received.target.query.empty() ? "" : received.target.query.substr(1));
    out.append(",");
    append_member(out, "client", http::format_address(received.client.address, address));
    out.append(",");
    append_member(out, "route", received.route->name);
    out.append(",\"headers\":[");
    bool is_first = true;
    for (const auto& line : r.head().fields.lines) { // a list: names may repeat
        out.append(is_first ? "{" : ",{");
        is_first = false;
        append_member(out, line.name, line.value);
        out.append("}");
    }
    out.append("],\"body_bytes\":", http::decimal{body_bytes}, "}\n");
}

} // namespace

task<> respond_echo(request& r)
{
    bool is_here = true;
    if (r.client.awaits_continue())
        is_here = co_await r.client.send_continue();
    std::uint64_t body_bytes = 0;
    while (is_here && !r.client.has_read_body()) {
        const auto piece = co_await r.client.read_body();
        body_bytes += piece.data.size();
        is_here = piece.error != http::http_error::client_gone;
        if (is_here && piece.error != http::http_error::none) {
            co_await respond_error(r, piece.error);
            co_return;
        }
    }
    if (!is_here)
        co_return;
    auto& body = r.memory->own_body;
    body.clear();
    append_echo(body, r, body_bytes);
    auto& fields = r.memory->answer_fields;
    fields.clear();
    append_own_fields(fields.text(), r);
    fields.text().append("Content-Type: application/json\r\n");
    fields.place_framing();
    fields.text().append(r.memory->limit_fields.view());
    co_await send_own_answer(r, 200);
}

} // namespace headgate
