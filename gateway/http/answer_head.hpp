// The head of an answer as every protocol can send it: a status, end-to-end field lines, and what follows as a body.
// How a connection frames it is the matter of its session; append_http1_head is HTTP/1's way.
#pragma once

#include "gateway/http/buffer.hpp"
#include "gateway/http/framing.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headgate::http {

// End-to-end field lines in the order in which they are sent, each `Name: value` with CR LF behind it.
class field_lines
{
public:
    // Lines are appended to this text, whole ones only.
    byte_buffer& text() { return text_; }
    std::string_view view() const { return text_.view(); }

    void clear()
    {
        text_.clear();
        framing_at_ = connection_at_ = at_the_end;
    }
    // HTTP/1 writes Content-Length or Transfer-Encoding here, and Connection; behind all lines where this is not
    // called.
    void place_framing() { framing_at_ = text_.size(); }
    void place_connection() { connection_at_ = text_.size(); }
    std::size_t framing_at() const { return std::min(framing_at_, text_.size()); }
    std::size_t connection_at() const { return std::max(framing_at(), std::min(connection_at_, text_.size())); }

    // Calls visit(name, value) for each line: for protocols whose fields are not text.
    template <class Visit>
    void each(Visit visit) const
    {
        for (auto rest = text_.view(); !rest.empty();) {
            const auto end = rest.find("\r\n");
            const auto line = rest.substr(0, end);
            const auto colon = line.find(':');
            visit(line.substr(0, colon), trim(line.substr(colon + 1)));
            rest.remove_prefix(end + 2);
        }
    }

private:
    static constexpr std::size_t at_the_end = ~std::size_t{0};

    byte_buffer text_;
    std::size_t framing_at_ = at_the_end, connection_at_ = at_the_end;
};

struct answer_head
{
    unsigned status = 0;
    const field_lines* fields = nullptr;
    std::string_view reason = {};                       // empty: the usual one of the status
    std::optional<std::uint64_t> length = std::nullopt; // of the body; told even where none follows (HEAD, 304)
    bool has_body = true;                               // else none follows, whatever the length says
    // The request is over before its body was read: what is left of it is dropped, if it is not too much.
    bool drops_request_body = false;
    bool closes = false; // the client's bytes cannot be trusted any further (A15)
};

// Returns the head that relays an upstream's answer; its fields are in `fields`.
answer_head relay_head(const response_head& head, const response_framing& framing, const field_lines& fields);

// Returns how an HTTP/1 client is sent the body: in chunks where its length is not known, and until the end of the
// connection where the client is too old for chunks (C11).
body_framing frame_answer(const answer_head& head, unsigned minor_version);

// Appends the head in HTTP/1.1. `connection`: the value of the Connection field; empty: no such field.
void append_http1_head(byte_buffer& out, const answer_head& head, const body_framing& body,
                       std::string_view connection);

} // namespace headgate::http
