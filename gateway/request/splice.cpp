#include "gateway/request/splice.hpp"

#include "gateway/request/request.hpp"
#include "gateway/upstream/upstream.hpp"
#include "gateway/worker.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>

namespace headgate {

namespace {

// What must be left of a body for a pipe to be worth it (decision 10).
constexpr std::uint64_t worth_a_pipe = 64 * 1024;
// Of one body, before clients that wait have their turn.
constexpr std::size_t most_in_a_row = 256 * 1024;

// By the kernel, or by a sandbox around the process.
bool is_unsupported(const error_code& error)
{
    using namespace boost::system::errc;
    return error == invalid_argument || error == function_not_supported || error == operation_not_permitted ||
           error == permission_denied;
}

task<std::optional<relay_end>> pass_through(request& r, upstream_connection& from, kernel_pipe& pipe,
                                            const client_watch& watch)
{
    std::size_t in_a_row = 0;
    for (auto left = r.memory->answer_body.left(); left > 0;) {
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(left, most_in_a_row));
        const auto error = co_await from.read(pipe, most, r.upstream.pool->idle_timeout());
        if (is_unsupported(error))
            co_return std::nullopt;
        if (error)
            co_return watch.client_is_gone() ? relay_end::client_gone : relay_end::cut;
        left -= pipe.held();
        in_a_row += pipe.held();
        const bool is_sent = co_await r.client.send_pipe(pipe, left == 0);
        if (!is_sent)
            co_return relay_end::client_gone;
        if (in_a_row >= most_in_a_row && left > 0) {
            in_a_row = 0;
            co_await r.worker.loop().let_clients_go_first();
        }
    }
    co_return relay_end::complete;
}

} // namespace

bool may_splice(const request& r)
{
    return r.memory->answer_framing.body.kind == http::body_kind::length &&
           r.memory->answer_body.left() >= worth_a_pipe && r.client.may_splice();
}

task<std::optional<relay_end>> splice_answer(request& r, upstream_connection& from, const client_watch& watch)
{
    auto& pipes = r.worker.pipes();
    auto pipe = pipes.take();
    if (!pipe)
        co_return std::nullopt;
    r.upstream.answer.give_back();
    const auto how = co_await pass_through(r, from, pipe, watch);
    pipes.give_back(std::move(pipe));
    if (!how) {
        static std::atomic_flag is_logged;
        pipes.give_up();
        if (!is_logged.test_and_set())
            spdlog::warn("splice is not allowed here: long answers are copied, which takes more CPU");
    }
    co_return how;
}

} // namespace headgate
