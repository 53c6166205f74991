#include "gateway/client/http1_session.hpp"

#include "gateway/request/handle_request.hpp"
#include "gateway/worker.hpp"

namespace headgate {

namespace {

using http::http_error;

constexpr unsigned pipelined_per_turn = 32;
constexpr std::size_t most_in_a_row = 256 * 1024; // of one body, before other clients have their turn
constexpr std::uint64_t most_dropped =
    64 * 1024; // of a body that is not wanted, before the connection is closed instead

} // namespace

template <class Stream>
http1_session<Stream>::http1_session(worker& owner, boost::local_shared_ptr<listener> from, Stream stream,
                                     const http::ip_address& peer)
    : worker_(owner), listener_(std::move(from)), stream_(owner.loop(), std::move(stream))
{
    connection_.peer = peer;
    worker_.enter(*this);
}

template <class Stream>
http1_session<Stream>::~http1_session()
{
    worker_.leave(*this);
    listener_->caps().leave(connection_.peer);
    fall_idle();
}

template <class Stream>
task<> http1_session<Stream>::serve([[maybe_unused]] std::unique_ptr<http1_session> self)
{
    unsigned in_a_row = 0;
    for (;;) {
        if (!message_ || message_->in.empty()) {
            fall_idle();
            if (listener_->is_closed())
                break;
            is_idle_ = true;
            stream_.reading().arm(listener_->settings()->idle_timeout);
            const auto [error, bytes] = co_await stream_.read_when_idle(first_);
            stream_.reading().disarm();
            is_idle_ = false;
            if (error || !stream_.is_open())
                break;
            begin_message({first_.data(), bytes});
        }
        bool has_head = parse_head();
        if (!has_head)
            has_head = co_await read_rest_of_head();
        if (!has_head)
            break;
        co_await handle_request(worker_, *this);

        const auto& m = *message_;
        const bool is_next = m.is_answered && m.stays_open && m.is_read();
        if (!is_next || listener_->is_closed()) {
            if (stream_.is_open() && (!m.is_read() || m.has_unread() || stream_.has_unread()))
                co_await linger();
            break;
        }
        message_->next();
        transferred_ = {};
        // A client that has sent many requests at once must not keep the others waiting.
        if (!message_->in.empty() && ++in_a_row % pipelined_per_turn == 0)
            co_await worker_.loop().let_clients_go_first();
    }
    stream_.close();
}

// ---- one message after the other

template <class Stream>
void http1_session<Stream>::begin_message(std::string_view first)
{
    settings_ = listener_->settings();
    const auto& limits = settings_->config.limits;
    message_ = worker_.http1_messages().take();
    message_->start(first, {limits.request_line.bytes, limits.head.bytes, limits.fields});
    auto& in = message_->in;
    if (first.size() == first_.size()) // the rest of the request has come too, most likely
        in.commit(stream_.read_now(in.prepare(http::message::read_size), http::message::read_size));
    head_ = &message_->head();
    framing_ = &message_->framing();
}

template <class Stream>
void http1_session<Stream>::fall_idle()
{
    if (!message_)
        return;
    message_->clear();
    transferred_ = {};
    worker_.http1_messages().give_back(std::move(message_));
}

// False: more bytes are needed.
template <class Stream>
bool http1_session<Stream>::parse_head()
{
    if (!message_->parse_head(settings_->config.limits.body.bytes))
        return false;
    stream_.reading().disarm();
    transferred_.in = message_->head_size();
    error_ = message_->error();
    return true;
}

// The time for a head counts from its first byte to its last; silence before that is idleness. False: there is no
// request to answer.
template <class Stream>
task<bool> http1_session<Stream>::read_rest_of_head()
{
    stream_.reading().arm(settings_->head_timeout);
    for (bool is_complete = false; !is_complete;) {
        const auto got = co_await read_into_message();
        if (!got.error)
            is_complete = parse_head();
        // The deadline may pass while the bytes of a read are there already: then it has cancelled nothing.
        if (is_complete || (!got.error && !stream_.reading().expired()))
            continue;
        stream_.reading().disarm();
        // An empty line and then silence is idleness too: a 408 might be taken for the next request's answer.
        if (!stream_.reading().expired() || !message_->has_begun())
            co_return false;
        message_->refuse_late_head();
        transferred_.in = message_->head_size();
        error_ = message_->error();
        is_complete = true;
    }
    co_return true;
}

template <class Stream>
task<io_result> http1_session<Stream>::read_into_message()
{
    constexpr auto most = http::message::read_size;
    auto& in = message_->in;
    const auto [error, bytes] = co_await stream_.read(in.prepare(most), most);
    in.commit(bytes);
    io_result got{error, bytes};
    co_return got;
}

// ---- the body

template <class Stream>
body_piece http1_session<Stream>::take_body()
{
    const auto before = message_->body_bytes();
    const auto piece = message_->take_body(settings_->config.limits.body.bytes);
    transferred_.in += message_->body_bytes() - before;
    return piece;
}

template <class Stream>
task<body_piece> http1_session<Stream>::read_body()
{
    auto& m = *message_;
    for (;;) {
        auto piece = take_body();
        if (piece.done || piece.error != http_error::none || !piece.data.empty())
            co_return piece;
        m.rewind_window();
        const auto began = std::chrono::steady_clock::now();
        stream_.reading().arm(settings_->body_timeout);
        const auto got = co_await read_body_bytes();
        stream_.reading().disarm();
        // Each piece must come in time, and all of them together.
        m.body_wait += std::chrono::steady_clock::now() - began;
        const auto& allowed = settings_->config.timeouts;
        if (stream_.reading().expired())
            piece.error = http_error::body_timeout;
        else if (got.error)
            piece.error = http_error::client_gone;
        else if (http::is_too_slow(m.body_wait, m.body_bytes() + got.bytes, allowed.body, allowed.body_rate.bytes))
            piece.error = http_error::body_timeout;
        if (piece.error != http_error::none)
            co_return piece;
    }
}

// Reads into the window, unless reading was stopped: a cancellation is lost when nothing is pending. Where a client
// sends as fast as it is read, others have their turn in between.
template <class Stream>
task<io_result> http1_session<Stream>::read_body_bytes()
{
    auto& m = *message_;
    io_result got{asio::error::operation_aborted, 0};
    if (m.bytes_in_a_row >= most_in_a_row) {
        m.bytes_in_a_row = 0;
        co_await worker_.loop().let_clients_go_first();
    }
    if (!m.is_reading_stopped)
        got = co_await read_into_message();
    m.bytes_in_a_row += got.bytes;
    if (m.is_reading_stopped)
        got.error = asio::error::operation_aborted;
    co_return got;
}

template <class Stream>
task<bool> http1_session<Stream>::send_continue()
{
    constexpr std::string_view line = "HTTP/1.1 100 Continue\r\n\r\n";
    message_->has_continued = true;
    transferred_.heads_out += line.size();
    const io_result sent = co_await stream_.send(line, {}, false, settings_->write_timeout);
    co_return count_sent(line.size(), sent.bytes);
}

template <class Stream>
task<body_piece> http1_session<Stream>::read_raw()
{
    body_piece piece{.data = message_->take_raw()}; // the client may have sent something right behind its head
    if (piece.data.empty()) {
        message_->rewind_window();
        const auto got = co_await read_body_bytes();
        if (got.error)
            piece.error = http_error::client_gone;
        else
            piece.data = message_->take_raw();
    }
    transferred_.in += piece.data.size();
    co_return piece;
}

template <class Stream>
void http1_session<Stream>::stop_reading()
{
    message_->is_reading_stopped = true;
    stream_.cancel();
}

// False: the connection must be closed after all.
template <class Stream>
task<bool> http1_session<Stream>::drop_body()
{
    std::uint64_t dropped = 0;
    while (!message_->is_read()) {
        const auto piece = co_await read_body();
        dropped += piece.data.size();
        if (piece.error != http_error::none || dropped > most_dropped)
            co_return false;
    }
    co_return true;
}

// ---- the answer

template <class Stream>
task<bool> http1_session<Stream>::send_interim(const http::answer_head& head)
{
    if (head_->minor_version == 0) // it would not understand (C5)
        co_return true;
    auto& out = message_->out;
    out.clear();
    http::append_http1_head(out, head, {}, {});
    transferred_.heads_out += out.size();
    const io_result sent = co_await stream_.send(out.view(), {}, false, settings_->write_timeout);
    co_return count_sent(out.size(), sent.bytes);
}

template <class Stream>
task<bool> http1_session<Stream>::send_head(const http::answer_head& head, body_pieces first, bool end)
{
    auto& m = *message_;
    const bool can_go_on = !head.drops_request_body || m.may_drop_body(most_dropped);
    m.begin_answer(head, can_go_on && !listener_->is_closed());
    transferred_.heads_out += m.out.size();
    auto plain = m.append_body(first, end);
    http::join_small(m.out, plain);
    const bool is_last = end && !m.stays_open;
    const io_result sent = co_await stream_.send(m.out.view(), plain, is_last, settings_->write_timeout);
    const bool is_sent = count_sent(m.out.size() + plain.size(), sent.bytes);
    m.is_answered = is_sent && end;
    // The answer does not wait for the body that it refuses (L5); the next request does.
    if (m.is_answered && m.stays_open && head.drops_request_body && !m.is_read())
        m.stays_open = co_await drop_body();
    co_return is_sent;
}

template <class Stream>
task<bool> http1_session<Stream>::send_body(body_pieces pieces, bool end)
{
    auto& m = *message_;
    m.out.clear();
    const auto plain = m.append_body(pieces, end);
    const bool is_last = end && !m.stays_open;
    const io_result sent = co_await stream_.send(m.out.view(), plain, is_last, settings_->write_timeout);
    const bool is_sent = count_sent(m.out.size() + plain.size(), sent.bytes);
    m.is_answered = is_sent && end;
    co_return is_sent;
}

// Counts what was sent. False: the client is gone.
template <class Stream>
bool http1_session<Stream>::count_sent(std::size_t wanted, std::size_t sent)
{
    transferred_.out += sent;
    return sent == wanted;
}

template <class Stream>
task<bool> http1_session<Stream>::send_pipe(kernel_pipe& from, bool end)
{
    const auto size = from.held();
    const auto left = co_await stream_.send(from, settings_->write_timeout);
    message_->is_answered = end && left == 0;
    co_return count_sent(size, size - left);
}

// ---- the connection

template <class Stream>
void http1_session<Stream>::watch(cancellable* waiting)
{
    watched_ = waiting;
    if (waiting)
        worker_.watch_list().arm(*this, worker_.loop().turn_began());
    else
        disarm();
}

template <class Stream>
void http1_session<Stream>::on_deadline()
{
    if (look() == presence::gone)
        watched_->cancel();
    else
        watch(watched_);
}

template <class Stream>
void http1_session<Stream>::let_go()
{
    if (is_idle_ && listener_->is_closed())
        stream_.cancel();
}

template <class Stream>
void http1_session<Stream>::cut()
{
    stream_.close();
}

// Closing with unread bytes would reset the connection, and might take our answer with it: say that nothing follows,
// then drop what still comes for a short while.
template <class Stream>
task<> http1_session<Stream>::linger()
{
    stream_.finish_sending();
    stream_.reading().arm(settings_->linger_timeout);
    std::uint64_t dropped = 0;
    while (dropped < 4 * most_dropped && !stream_.reading().expired()) {
        message_->in.clear();
        const auto got = co_await read_into_message();
        if (got.error)
            break;
        dropped += got.bytes;
    }
    stream_.reading().disarm();
    message_->in.clear();
}

template class http1_session<stream_socket>;

} // namespace headgate
