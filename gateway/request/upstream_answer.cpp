#include "gateway/request/upstream_answer.hpp"

#include "gateway/http/upgrade.hpp"
#include "gateway/request/request.hpp"

#include <cstring>

namespace headgate {

std::optional<http::http_error> parse_answer_head(request& r)
{
    const auto& bytes = r.upstream.answer.bytes();
    if (bytes.empty())
        return std::nullopt;
    auto& parser = r.memory->answer_parser;
    switch (parser.feed(bytes.view())) {
    case http::parse_state::need_more:
        return std::nullopt;
    case http::parse_state::failed:
        return parser.error();
    case http::parse_state::done:
        break;
    }
    return http::frame_response(r.head().method_number, r.answer(), r.memory->answer_framing);
}

void drop_interim_head(request& r)
{
    auto& bytes = r.upstream.answer.bytes();
    const auto used = r.memory->answer_parser.consumed();
    std::memmove(bytes.data(), bytes.data() + used, bytes.size() - used);
    bytes.truncate(bytes.size() - used);
    r.memory->answer_parser.reset();
    ++r.upstream.interim_heads;
}

bool accepts_handshake(const request& r)
{
    const auto* key = r.head().fields.find(http::field_id::sec_websocket_key);
    return key && http::accepts_websocket(r.answer(), r.memory->answer_framing.connection, key->value);
}

} // namespace headgate
