// A link's connection inside TLS: the handshake, and what passes through the session afterwards.
#include "limiter/redis/client/link.hpp"

namespace headgate::limiter::redis {

// False: why_ says what failed.
task<bool> link::shake_hands(steady_time until)
{
    tls_ = std::make_unique<tls_session>(*options_.tls, options_.tls_name.empty() ? options_.host : options_.tls_name);
    is_sending_ = true; // the end of a turn leaves the socket to the handshake
    limit_time(until);
    const bool is_open = co_await exchange_hellos();
    lift_limit();
    is_sending_ = false;
    if (state_ == state::stopped)
        co_return false;
    if (is_late_)
        why_ = "no TLS handshake within the time allowed; does the server speak TLS there?";
    else if (tls_->now() == tls_session::state::failed)
        why_ = tls_->why();
    co_return is_open && !is_late_;
}

task<bool> link::exchange_hellos()
{
    for (;;) {
        // Also after the last step: our own end of the handshake, or the alert that says why there is none.
        const bool sent = co_await send_hello();
        if (!sent) {
            why_ = "the connection broke in the TLS handshake";
            hear_last_words();
            co_return false;
        }
        if (tls_->now() == tls_session::state::failed)
            co_return false;
        if (tls_->now() == tls_session::state::open)
            co_return true;
        const auto got = co_await socket_.read_some(in_.data(), in_.size());
        if (got.error) {
            why_ = got.error == asio::error::eof ? "the server closed the connection in the TLS handshake"
                                                 : got.error.message();
            co_return false;
        }
        tls_->feed({in_.data(), got.bytes});
    }
}

task<bool> link::send_hello()
{
    for (;;) {
        const bool sound = socket_.is_open() && send_some();
        if (!sound || tls_->outgoing().empty())
            co_return sound;
        const auto ready = co_await socket_.until_writable();
        if (ready.error)
            co_return false;
    }
}

// What is to be sent, with the commands that were written since. A session that is over takes none: what it waits for
// ends with the connection.
std::string& link::encrypted()
{
    if (!out_.empty()) {
        tls_->write(out_);
        out_.clear();
        if (tls_->now() == tls_session::state::failed)
            close(tls_->why());
    }
    return tls_->outgoing();
}

// False: the connection is over, and why_ says why.
bool link::receive_encrypted(std::string_view bytes)
{
    tls_->feed(bytes);
    // The session has its own copy, so the buffer serves for the plain text.
    while (const auto got = tls_->read(in_.data(), in_.size())) {
        if (!receive({in_.data(), got}))
            return false;
    }
    if (!tls_->outgoing().empty() && !is_sending_)
        reactor_.at_turn_end(*this); // an answer of the session itself, such as new keys
    if (tls_->now() == tls_session::state::open)
        return true;
    if (why_.empty())
        why_ = tls_->now() == tls_session::state::failed ? tls_->why() : "the server closed the connection";
    return false;
}

// A server may refuse us when the handshake is over for us already (TLS 1.3), and close: sending fails before anybody
// has read its reason. Replies that came with it are lost, as with any connection that breaks.
void link::hear_last_words()
{
    if (!socket_.is_open())
        return;
    const auto got = ::recv(socket_.native_handle(), in_.data(), in_.size(), MSG_DONTWAIT);
    if (got <= 0)
        return;
    tls_->feed({in_.data(), static_cast<std::size_t>(got)});
    while (tls_->read(in_.data(), in_.size()) > 0) {
    }
    if (why_.empty() && tls_->now() == tls_session::state::failed)
        why_ = tls_->why();
}

} // namespace headgate::limiter::redis
