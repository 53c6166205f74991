#include "gateway/request/echo.hpp"

#include "gateway/request/respond.hpp"
#include "gateway/request/session.hpp"

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

void append_echo(http::byte_buffer& out, const exchange& x)
{
    http::address_text address;
    out.append("{");
    append_member(out, "method", x.head().method);
    out.append(",");
    append_member(out, "path", x.path);
    out.append(",");
    append_member(out, "query", x.target.query.empty() ? x.target.query : x.target.query.substr(1));
    out.append(",");
    append_member(out, "client", http::format_address(x.client.address, address));
    out.append(",");
    append_member(out, "route", x.route->name);
    out.append(",\"headers\":[");
    bool first = true;
    for (const auto& line : x.head().fields.lines) { // a list: names may repeat
        out.append(first ? "{" : ",{");
        first = false;
        append_member(out, line.name, line.value);
        out.append("}");
    }
    out.append("],\"body_bytes\":");
    out.append_number(x.body_bytes);
    out.append("}\n");
}

} // namespace

task<bool> answer_with_echo(session& client, exchange& x)
{
    while (!x.body_done) {
        const auto piece = co_await client.read_body(x);
        if (piece.error == http::http_error::client_gone)
            co_return false;
        if (piece.error != http::http_error::none) {
            const bool again = co_await answer_error(client, x, piece.error);
            co_return again;
        }
    }
    auto& body = x.body_text;
    body.clear();
    append_echo(body, x);

    auto& owner = client.owner();
    const bool keep = x.framing.keep_alive && !owner.is_draining();
    auto& out = x.out;
    out.clear();
    out.append("HTTP/1.1 200 OK\r\nDate: ", owner.http_date(),
               "\r\nContent-Type: application/json\r\nContent-Length: ");
    out.append_number(body.size());
    out.append("\r\n", x.limit_fields.view());
    if (!keep)
        out.append("Connection: close\r\n");
    else if (x.head().minor_version == 0)
        out.append("Connection: keep-alive\r\n");
    out.append("\r\n");
    x.begin_answer(200, out.size());
    if (x.head().method_number != http::method_id::head)
        out.append(body.view());
    const bool sent = co_await client.send(out.view());
    co_return sent&& keep;
}

} // namespace headgate
