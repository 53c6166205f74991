// The answer on its way to the client, as fast as the slower side takes it.
#pragma once

#include "gateway/http/errors.hpp"
#include "gateway/request/exchange.hpp"
#include "gateway/request/session.hpp"
#include "gateway/request/upload.hpp"
#include "gateway/request/watch_client.hpp"
#include "gateway/upstream/upstream.hpp"
#include "limiter/io/task.hpp"

#include <optional>

namespace headgate {

// The answer whose head has been read: made ready, then sent. Gives the upstream's connection back or discards it.
// Whether the client's goes on.
class relaying
{
public:
    relaying(session& client, exchange& x, upstream_connection& link, uploading& upload);
    std::optional<bool> now(); // an answer that has all come, to a client that takes it
    task<bool> later();

private:
    enum class end
    {
        complete,
        client_gone,
        cut // the upstream ended too early or sent nonsense
    };

    void build_head();
    using client_watch = watch_client<upstream_connection>;
    bool is_worth_a_pipe() const;
    task<std::optional<end>> try_pipe(const client_watch& watch);
    task<std::optional<end>> pass_rest(kernel_pipe& through, const client_watch& watch);
    auto others_first()
    {
        at_once_ = 0;
        return client_.owner().sockets().others_first();
    }
    void take_ready(std::size_t from);
    void finish_piece();
    bool finish(end how, http::http_error from_client);

    session& client_;
    exchange& x_;
    upstream_connection& link_;
    uploading& upload_;
    http::body_framing framing_; // for this client
    bool keep_;
    std::uint64_t left_;     // of a body with a length
    std::string_view plain_; // of the body, as it is
    bool done_ = false;      // the body has all come
    bool sound_ = true;      // so far
    session::sending piece_{};
    std::optional<bool> sent_; // the piece: all of it, or not and the client is gone
    bool copies_ = false;      // a pipe was wanted, and there was none
    std::size_t at_once_ = 0;  // bytes since others had their turn, at most
};
inline auto relay_answer(session& client, exchange& x, upstream_connection& link, uploading& upload)
{
    return at_once_or_later(relaying(client, x, link, upload));
}

} // namespace headgate
