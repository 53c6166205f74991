#include "gateway/http/answer_head.hpp"

#include "gateway/http/errors.hpp"

namespace headgate::http {

answer_head relay_head(const response_head& head, const response_framing& framing, const field_lines& fields)
{
    answer_head out{.status = head.status, .fields = &fields, .reason = head.reason};
    out.has_body = framing.body.kind != body_kind::none;
    if (framing.body.kind == body_kind::length)
        out.length = framing.body.length;
    else if (!out.has_body)
        out.length = framing.declared_length;
    return out;
}

body_framing frame_answer(const answer_head& head, unsigned minor_version)
{
    if (head.length)
        return {body_kind::length, *head.length};
    if (!head.has_body)
        return {body_kind::none, 0};
    return {minor_version == 1 ? body_kind::chunked : body_kind::until_close, 0};
}

void append_http1_head(byte_buffer& out, const answer_head& head, const body_framing& body, std::string_view connection)
{
    const auto lines = head.fields->view();
    const auto framing_at = head.fields->framing_at(), connection_at = head.fields->connection_at();
    out.append("HTTP/1.1 ", decimal{head.status}, ' ', head.reason.empty() ? reason_phrase(head.status) : head.reason,
               "\r\n", lines.substr(0, framing_at));
    if (body.kind == body_kind::chunked)
        out.append("Transfer-Encoding: chunked\r\n");
    else if (body.kind == body_kind::length)
        out.append("Content-Length: ", decimal{body.length}, "\r\n");
    out.append(lines.substr(framing_at, connection_at - framing_at));
    if (head.status == 101) // the only upgrade there is (C7)
        out.append("Upgrade: websocket\r\n");
    if (!connection.empty())
        out.append("Connection: ", connection, "\r\n");
    out.append(lines.substr(connection_at), "\r\n");
}

} // namespace headgate::http
