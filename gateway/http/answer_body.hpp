// Removes the framing from the body of an upstream's answer: takes bytes, returns pieces of data. Pure.
#pragma once

#include "gateway/http/chunk_decoder.hpp"
#include "gateway/http/framing.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace headgate::http {

class answer_body
{
public:
    // Begins the body of another answer.
    void start(const body_framing& framing);
    // Takes received bytes. The pieces of data are views of them, valid until the next call.
    void take(std::string_view ready);
    // Ends the body with the connection. Returns false when the body is incomplete.
    bool end();

    std::span<const std::string_view> pieces() const { return pieces_; }
    bool is_done() const { return is_done_; }
    bool is_sound() const { return is_sound_; } // so far
    // Returns whether bytes came after the body: they are never the beginning of another answer (D4).
    bool has_excess() const { return has_excess_; }
    std::uint64_t left() const { return left_; } // of a body with a length

private:
    void take_chunks(std::string_view ready);

    body_framing framing_;
    chunk_decoder chunks_;
    std::vector<std::string_view> pieces_;
    std::uint64_t left_ = 0;
    bool is_done_ = false, is_sound_ = true, has_excess_ = false;
};

} // namespace headgate::http
