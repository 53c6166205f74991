// Everything one request needs in memory: buffers, parsers, what was found out about it. Taken from the worker's pool
// when a request begins and given back when its client falls idle, so that an idle client holds almost nothing.
#pragma once

#include "gateway/compiled/config.hpp"
#include "gateway/http/buffer.hpp"
#include "gateway/http/chunk_decoder.hpp"
#include "gateway/http/client_address.hpp"
#include "gateway/http/framing.hpp"
#include "gateway/http/head.hpp"
#include "gateway/http/router.hpp"
#include "gateway/http/target.hpp"
#include "limiter/io/reactor.hpp"
#include "limiter/store.hpp"

#include <boost/smart_ptr/local_shared_ptr.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string_view>

namespace headgate {

// What the limit step said, for the answer's fields and the log. Of the arrays a request touches what its rules need.
struct limit_outcome
{
    bool refused = false;
    bool shadow_refused = false; // some shadow rule would have
    bool degraded = false;       // the store was full: judged by counters that others share
    limiter::microseconds retry_after{-1};
    limiter::microseconds delay{0};                               // admitted: hold the request this long
    std::size_t count = 0;                                        // decisions
    std::size_t chains = 0;                                       // that were asked
    std::vector<std::shared_ptr<const limiter::rule_group>> kept; // groups newer than the request's configuration
    std::array<limiter::decision, limiter::max_decisions> decisions;
    std::array<const limiter::rule*, limiter::max_decisions> rules; // of each decision
    std::array<const rule_text*, limiter::max_decisions> ready;     // what is told of them; null: they are too new

    void clear()
    {
        refused = shadow_refused = degraded = false;
        retry_after = limiter::never;
        delay = {};
        count = chains = 0;
        kept.clear();
    }
};

// What is known of one part of a chain beside what the store is asked.
struct asked_part
{
    const compiled_rules* from = nullptr;
    std::size_t text_at = 0, text_size = 0;               // its key, in key_text
    std::size_t costs_at = 0;                             // in the exchange's costs
    const limiter::rule_group* judged = nullptr;          // by these rules, newer ones during a reload
    limiter::time_point charged_at{};                     // by the clock that judged it
    static constexpr std::size_t plain = ~std::size_t{0}; // costs that are nowhere: the rules' own are used
};

// The keys of one chain for this request, as parts the store understands. They view the exchange's key_text.
struct asked_chain
{
    const compiled_chain* chain = nullptr;
    std::size_t count = 0;
    std::size_t first_decision = 0; // of the chain, in the outcome's
    std::array<limiter::part, limiter::max_parts> parts;
    std::array<asked_part, limiter::max_parts> known; // of each part

    std::span<const limiter::part> view() const { return {parts.data(), count}; }
};

inline constexpr std::size_t read_size = 16 * 1024;

// One piece of a request's body, as a view of the exchange's buffer.
struct body_piece
{
    std::string_view data;
    bool done = false;
    http::http_error error = http::http_error::none;
};

// How a request ended, for the log step.
struct request_outcome
{
    unsigned status = 0; // 0: nothing was answered
    http::http_error error = http::http_error::none;
    std::uint64_t bytes_out = 0; // to the client
    std::uint64_t body_from = 0; // how many of them are heads
    std::string_view server;     // of the upstream
    steady_time asked{};         // it has the request's head
    steady_time answered{};      // its answer began
    steady_time ended{};         // not set: when it is logged
    bool came_whole = false;     // the answer began and ended at once
};

class upstream;
class upstream_connection;

// A provider's token of this request, once somebody looked.
struct token_seen
{
    enum state_of
    {
        absent,
        bad,
        good
    };
    bool looked = false;
    state_of state = absent;
    identity::token_claims claims;
};

struct exchange
{
    // Bytes from the client: [0, body_at) is the head, then a window of body or the next request.
    http::byte_buffer in;
    http::byte_buffer out; // leaves in one send
    http::request_parser parser;
    http::chunk_decoder request_chunks;

    std::shared_ptr<const compiled_config> setup; // the configuration this request, or the one before, began with
    http::request_framing framing;
    http::request_target target;
    http::byte_buffer path_scratch;
    std::string_view path;      // normalised
    http::byte_buffer path_out; // rewritten for the upstream
    std::string_view host;
    http::route_match match;
    const compiled_route* route = nullptr;
    http::client_address client;

    // The upstream's side, in forward.
    http::byte_buffer answer_in; // bytes from the upstream: its head, then a window of its body
    http::response_parser answer_parser;
    http::chunk_decoder answer_chunks;
    http::response_framing answer_framing;
    unsigned interim_heads = 0;   // 1xx before the answer
    http::byte_buffer body_out;   // the beginning of a body that has to be chunked anew
    http::byte_buffer upload_out; // the rest of it
    http::byte_buffer interim_out;
    boost::local_shared_ptr<upstream> via; // of the worker: no other thread counts with it

    http::byte_buffer key_text;
    http::byte_buffer value_text;    // one source of a key, decoded
    std::size_t asked_count = 0;     // chains that were charged
    std::vector<token_seen> tokens;  // by the provider's number
    std::optional<std::size_t> plan; // its number, once somebody asked
    bool settles = false;            // some of them must be put right when the request has ended
    std::size_t costs_used = 0;      // of `costs`
    http::byte_buffer body_text;     // of an answer of our own
    http::byte_buffer limit_fields;  // RateLimit lines, ready to be inserted, then the explanation if one is due
    std::size_t quota_bytes = 0;     // of limit_fields, without the explanation

    std::size_t body_at = 0;                           // where the body's window begins in `in`
    std::size_t body_read = 0;                         // how far the window has been used
    std::uint64_t body_left = 0;                       // of a body with a length
    std::uint64_t body_bytes = 0;                      // seen so far
    std::chrono::steady_clock::duration body_waited{}; // for the client to send it
    bool body_done = false;
    bool continue_sent = false;
    steady_time began{};
    request_outcome outcome;
    std::size_t request_id_size = 0;
    std::array<char, 128> request_id{};

    // Large and not always touched: last, so that the rest stays together.
    limit_outcome limit;
    std::array<asked_chain, config::max_chains_a_route> asked;
    std::array<std::uint64_t, limiter::max_decisions> costs;                     // where a part has no plain ones
    std::array<std::optional<std::uint64_t>, limiter::max_decisions> told_costs; // the answer's words about each

    const http::request_head& head() const { return parser.head(); }
    const http::response_head& answer() const { return answer_parser.head(); }

    std::string_view request_id_view() const { return {request_id.data(), request_id_size}; }

    // An answer goes out next; the first `head_size` bytes of it are its head.
    void begin_answer(unsigned status, std::size_t head_size)
    {
        outcome.status = status;
        outcome.body_from = outcome.bytes_out + head_size;
    }

    // Forgets the request, keeps what the client sent after it.
    void next_request()
    {
        const auto rest = in.size() - body_read;
        if (rest > 0 && body_read > 0)
            std::memmove(in.data(), in.data() + body_read, rest);
        in.truncate(rest);
        reset();
    }
    void reset()
    {
        parser.reset();
        body_at = body_read = 0;
        body_bytes = body_left = 0;
        body_waited = {};
        body_done = false;
        continue_sent = false;
        route = nullptr;
        path = host = {};
        outcome = {};
        asked_count = costs_used = 0;
        settles = false;
        plan.reset();
        for (auto& token : tokens)
            token = {};
        match.route = http::route_match::none;
        match.allowed_methods = 0;
        via.reset();
        limit.clear();
        limit_fields.clear();
        quota_bytes = 0;
        out.clear();
    }
};

// What of the body has arrived and was not taken yet; nothing when more must be read first.
body_piece take_ready_body(exchange& x, std::uint64_t body_limit);

// Whether a client has been waited for longer than `grace` and a second for every `rate` bytes that came (O5). No rate,
// no hurry.
bool is_too_slow(std::chrono::steady_clock::duration waited, std::uint64_t bytes,
                 std::chrono::steady_clock::duration grace, std::uint64_t rate);

} // namespace headgate
