#include "gateway/http/message.hpp"

#include "gateway/http/chunk_writer.hpp"

#include <algorithm>
#include <cstring>

namespace headgate::http {

void message::start(std::string_view first, const head_limits& limits)
{
    in.reserve(read_size);
    in.append(first);
    parser_.set_limits(limits);
}

void message::next()
{
    const auto rest = in.size() - body_.taken;
    if (rest > 0 && body_.taken > 0)
        std::memmove(in.data(), in.data() + body_.taken, rest);
    in.truncate(rest);
    parser_.reset();
    error_ = http_error::none;
    body_ = {};
    body_wait = {};
    bytes_in_a_row = 0;
    has_continued = is_reading_stopped = is_answered = stays_open = false;
}

void message::clear()
{
    body_.taken = in.size();
    next();
}

// ---- the head

bool message::parse_head(std::uint64_t body_limit)
{
    const auto state = parser_.feed(in.view());
    if (state == parse_state::need_more)
        return false;
    error_ = parser_.error();
    if (state == parse_state::done)
        check_framing(body_limit);
    return true;
}

void message::check_framing(std::uint64_t body_limit)
{
    body_.at = body_.taken = parser_.consumed();
    error_ = frame_request(head(), body_limit, framing_);
    if (error_ != http_error::none)
        return;
    const bool reads_on = framing_.body.kind != body_kind::none || framing_.connection.upgrade;
    if (reads_on && in.capacity() < body_.at + read_size) {
        // The window of a body or a tunnel follows the head: reserve it before there are views of the head.
        in.reserve(body_.at + read_size);
        parser_.moved_to(in.data());
        frame_request(head(), body_limit, framing_);
    }
    body_.left = framing_.body.kind == body_kind::length ? framing_.body.length : 0;
    body_.is_done = framing_.body.kind == body_kind::none || framing_.body == body_framing{body_kind::length, 0};
    chunks_.reset();
}

void message::refuse_late_head()
{
    parser_.moved_to(in.data()); // the buffer may have grown
    error_ = http_error::head_timeout;
}

// ---- the body

body_piece message::take_body(std::uint64_t body_limit)
{
    if (body_.is_done)
        return {.done = true};
    const auto ready = in.view().substr(body_.taken);
    if (framing_.body.kind == body_kind::length) {
        const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(ready.size(), body_.left));
        body_.left -= n;
        body_.taken += n;
        body_.seen += n;
        body_.is_done = body_.left == 0;
        return {ready.substr(0, n), body_.is_done};
    }
    if (ready.empty())
        return {};
    const auto step = chunks_.next(ready);
    body_.taken += step.consumed;
    body_.seen += step.data.size();
    if (step.kind == chunk_step::what::failed)
        return {.error = chunks_.error()};
    if (body_.seen > body_limit)
        return {.error = http_error::body_too_large};
    body_.is_done = step.kind == chunk_step::what::done;
    return {step.data, body_.is_done};
}

std::string_view message::take_raw()
{
    const auto bytes = in.view().substr(body_.taken);
    body_.taken = in.size();
    return bytes;
}

void message::rewind_window()
{
    in.truncate(body_.at);
    body_.taken = body_.at;
}

bool message::may_drop_body(std::uint64_t most) const
{
    if (body_.is_done)
        return true;
    // A client that waits for 100 and gets an answer instead may send the body or leave it out: where its next request
    // begins is unknown (C4).
    if (framing_.expects_continue && !has_continued && in.size() == body_.at)
        return false;
    return framing_.body.kind != body_kind::length || body_.left <= most;
}

// ---- the answer

void message::begin_answer(const answer_head& answer, bool may_stay_open)
{
    const auto framing = frame_answer(answer, head().minor_version);
    answer_framing_ = answer.has_body ? framing : body_framing{};
    stays_open = may_stay_open && framing_.keep_alive && !answer.closes && answer.status != 101 &&
                 framing.kind != body_kind::until_close;
    const std::string_view connection = answer.status == 101        ? "upgrade"
                                        : !stays_open               ? "close"
                                        : head().minor_version == 0 ? "keep-alive"
                                                                    : "";
    out.clear();
    append_http1_head(out, answer, framing, connection);
}

std::string_view message::append_body(std::span<const std::string_view> pieces, bool end)
{
    const bool is_chunked = answer_framing_.kind == body_kind::chunked;
    if (!is_chunked && pieces.size() == 1)
        return pieces.front();
    for (const auto piece : pieces) {
        if (is_chunked)
            append_chunk(out, piece);
        else
            out.append(piece);
    }
    if (end && is_chunked)
        out.append(last_chunk);
    return {};
}

bool is_too_slow(std::chrono::steady_clock::duration waited, std::uint64_t bytes,
                 std::chrono::steady_clock::duration grace, std::uint64_t rate)
{
    const auto beyond = std::chrono::duration<double>(waited - grace).count();
    return rate != 0 && beyond * static_cast<double>(rate) > static_cast<double>(bytes);
}

} // namespace headgate::http
