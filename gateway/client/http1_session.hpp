// One client connection that speaks HTTP/1: reads heads, hands each request to handle_request, and keeps the connection
// as long as both sides may. It frames answers, tells clients to continue, drops bodies that are not wanted, lingers
// and resets. Generic over its stream, which is a socket or something over one.
#pragma once

#include "gateway/client/client.hpp"
#include "gateway/client/client_stream.hpp"
#include "gateway/client/listener.hpp"
#include "gateway/client/session.hpp"
#include "gateway/http/message.hpp"
#include "limiter/io/deadline.hpp"

#include <array>
#include <memory>
#include <string_view>

namespace headgate {

class worker;

template <class Stream>
class http1_session final : public session, public client, private deadline
{
public:
    http1_session(worker& owner, boost::local_shared_ptr<listener> from, Stream stream, const http::ip_address& peer);
    ~http1_session();

    // Serves the connection until it ends. The coroutine owns the session.
    task<> serve(std::unique_ptr<http1_session> self);

    // session
    void let_go() override;
    void cut() override;

    // client
    bool has_read_body() const override { return message_->is_read(); }
    body_piece take_body() override;
    task<body_piece> read_body() override;
    bool awaits_continue() const override { return message_->awaits_continue(); }
    task<bool> send_continue() override;
    task<body_piece> read_raw() override;
    void stop_reading() override;
    void resume_reading() override { message_->is_reading_stopped = false; }
    task<bool> send_interim(const http::answer_head& head) override;
    task<bool> send_head(const http::answer_head& head, body_pieces first, bool end) override;
    task<bool> send_body(body_pieces pieces, bool end) override;
    bool may_splice() const override { return client_stream<Stream>::may_splice; }
    task<bool> send_pipe(kernel_pipe& from, bool end) override;
    void abort() override { stream_.reset(); }
    presence look() override { return stream_.look(); }
    void watch(cancellable* waiting) override;

private:
    // A client that has said nothing costs its session, its coroutine and these bytes.
    static constexpr std::size_t first_read = 1152;

    void begin_message(std::string_view first);
    void fall_idle();
    bool parse_head();
    task<bool> read_rest_of_head();
    task<io_result> read_into_message();
    task<io_result> read_body_bytes();
    task<bool> drop_body();
    task<> linger();

    bool count_sent(std::size_t wanted, std::size_t sent);
    void on_deadline() override; // of watch()

    worker& worker_;
    const boost::local_shared_ptr<listener> listener_;
    shared_settings settings_; // of the request
    client_stream<Stream> stream_;
    cancellable* watched_ = nullptr;
    std::unique_ptr<http::message> message_; // null: the client is idle, and holds next to nothing
    bool is_idle_ = false;
    std::array<char, first_read> first_;
};

} // namespace headgate
