// One request on an HTTP/1 connection, in the buffer of its bytes: its head, then a window of its body, or the next
// request. Pure: the session reads the bytes and sends the answer.
#pragma once

#include "gateway/http/answer_head.hpp"
#include "gateway/http/buffer.hpp"
#include "gateway/http/chunk_decoder.hpp"
#include "gateway/http/framing.hpp"
#include "gateway/http/head/head.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

namespace headgate::http {

// One piece of a body; it is valid until the next call.
struct body_piece
{
    std::string_view data;
    bool done = false; // the body has ended
    http_error error = http_error::none;
};

class message
{
public:
    static constexpr std::size_t read_size = 16 * 1024;

    // Begins with the first bytes of a connection that was idle.
    void start(std::string_view first, const head_limits& limits);
    // Discards the request, keeps the bytes that the client has sent after it.
    void next();
    // Discards the request and all bytes.
    void clear();

    // ---- the head
    // Returns false when more bytes are needed; true when the head is complete, or refused with an error.
    bool parse_head(std::uint64_t body_limit);
    // Refuses the head because its timeout is over.
    void refuse_late_head();
    bool has_begun() const { return parser_.started(); }
    const request_head& head() const { return parser_.head(); }
    const request_framing& framing() const { return framing_; }
    http_error error() const { return error_; }
    std::size_t head_size() const { return parser_.consumed(); }

    // ---- the body
    bool is_read() const { return body_.is_done; }
    // Takes the bytes that have arrived and were not taken yet; there may be none.
    body_piece take_body(std::uint64_t body_limit);
    // Takes all bytes that have arrived after the head.
    std::string_view take_raw();
    // Makes room for the next bytes at the beginning of the window, whose bytes were all taken. Views of the head stay
    // valid.
    void rewind_window();
    bool awaits_continue() const { return framing_.expects_continue && !body_.is_done && in.size() <= body_.at; }
    // Returns whether the rest of an unused body may be read and dropped; else the connection must be closed.
    bool may_drop_body(std::uint64_t most) const;
    bool has_unread() const { return in.size() > body_.taken; }
    std::uint64_t body_bytes() const { return body_.seen; }

    // ---- the answer
    // Decides how the answer is framed, and whether the connection stays open after it.
    void begin_answer(const answer_head& head, bool may_stay_open);
    // Appends the pieces to `out` as they are framed. A single one that needs no framing is returned instead.
    std::string_view append_body(std::span<const std::string_view> pieces, bool end);

    byte_buffer in;
    byte_buffer out;
    std::chrono::steady_clock::duration body_wait{}; // for the client to send the body
    bool has_continued = false;                      // 100 Continue was sent
    bool is_reading_stopped = false;                 // coroutines that wait for the body must end
    std::size_t bytes_in_a_row = 0;                  // of the body, since other clients had their turn
    bool is_answered = false;                        // the whole answer was sent
    bool stays_open = false;                         // the connection may carry another request

private:
    void check_framing(std::uint64_t body_limit);

    struct body_state
    {
        std::size_t at = 0;     // where the window begins in `in`
        std::size_t taken = 0;  // how far it has been taken
        std::uint64_t left = 0; // of a body with a length
        std::uint64_t seen = 0; // bytes of data, so far
        bool is_done = false;
    };

    request_parser parser_;
    request_framing framing_;
    http_error error_ = http_error::none;
    chunk_decoder chunks_;
    body_state body_;
    body_framing answer_framing_;
};

// Returns whether a client has been waited for longer than `grace` and one second per `rate` bytes that came (O5).
// No rate: no minimum.
bool is_too_slow(std::chrono::steady_clock::duration waited, std::uint64_t bytes,
                 std::chrono::steady_clock::duration grace, std::uint64_t rate);

} // namespace headgate::http
