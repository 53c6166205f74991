#include "gateway/request/exchange.hpp"

#include <algorithm>

namespace headgate {

body_piece take_ready_body(exchange& x, std::uint64_t body_limit)
{
    if (x.body_done)
        return {.done = true};
    const auto ready = x.in.view().substr(x.body_read);
    if (x.framing.body.kind == http::body_kind::length) {
        const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(ready.size(), x.body_left));
        x.body_left -= n;
        x.body_read += n;
        x.body_bytes += n;
        x.body_done = x.body_left == 0;
        return {ready.substr(0, n), x.body_done};
    }
    if (ready.empty())
        return {};
    const auto step = x.request_chunks.next(ready);
    x.body_read += step.consumed;
    x.body_bytes += step.data.size();
    if (step.kind == http::chunk_step::what::failed)
        return {.error = x.request_chunks.error()};
    if (x.body_bytes > body_limit)
        return {.error = http::http_error::body_too_large};
    x.body_done = step.kind == http::chunk_step::what::done;
    return {step.data, x.body_done};
}

bool is_too_slow(std::chrono::steady_clock::duration waited, std::uint64_t bytes,
                 std::chrono::steady_clock::duration grace, std::uint64_t rate)
{
    const auto beyond = std::chrono::duration<double>(waited - grace).count();
    return rate != 0 && beyond * static_cast<double>(rate) > static_cast<double>(bytes);
}

} // namespace headgate
