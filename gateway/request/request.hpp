// One request and what its path finds out about it, in four parts: what came from the client, what the limits decided,
// what goes to the upstream and comes back, and what is logged. A request lives from the end of its head to its log
// line. Its large buffers and arrays are memory of the worker's that requests use one after the other.
#pragma once

#include "gateway/buffer_pool.hpp"
#include "gateway/client/client.hpp"
#include "gateway/http/client_address.hpp"
#include "gateway/http/target.hpp"
#include "gateway/request/request_memory.hpp"

#include <boost/intrusive/list_hook.hpp>
#include <boost/smart_ptr/local_shared_ptr.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

namespace headgate {

class upstream;
class worker;

// What came from the client.
struct received_request
{
    steady_time began{};
    http::request_target target;
    std::string_view path; // normalised
    std::string_view host;
    std::string_view id;
    std::uint64_t allowed_methods = 0; // where no route matched but for the method
    const compiled_route* route = nullptr;
    http::client_address client;
};

// What the limits decided, and how it has to be settled.
struct request_limits
{
    explicit request_limits(judged_rules& in) : outcome(in) {}

    limit_outcome outcome;
    std::size_t charged = 0;                    // chains, the first of request_memory::chains
    std::size_t costs_used = 0;                 // of request_memory::costs
    bool waits_for_redis = false;               // the next chain's counters are there
    bool is_settled_later = false;              // some charges are corrected when the request has ended
    std::optional<std::size_t> plan;            // its number, once it was looked for
    std::size_t quota_bytes = 0;                // of limit_fields, without the explanation
    bool has_unknown_key = false;               // an API key that is in no table was presented
    const compiled_key* refusing_key = nullptr; // that is absent and must not be
};

// What goes to the upstream and comes back.
struct upstream_exchange
{
    explicit upstream_exchange(buffer_pool& from) : answer(from) {}

    boost::local_shared_ptr<upstream> pool; // of this worker; null: the request is not forwarded
    unsigned interim_heads = 0;             // 1xx before the answer
    pooled_buffer answer;                   // bytes from the upstream: its head, then a window of its body
};

// What is logged.
struct request_record
{
    unsigned status = 0; // 0: no answer was begun
    http::http_error error = http::http_error::none;
    std::string_view server;    // of the upstream
    steady_time sent{};         // the upstream has the request's head
    steady_time answered{};     // its answer began
    std::uint64_t body_out = 0; // once the request has ended
};

class request final : public boost::intrusive::list_base_hook<>
{
public:
    request(headgate::worker& on, headgate::client& from);
    ~request();
    request(const request&) = delete;
    request& operator=(const request&) = delete;

    const http::request_head& head() const { return client.head(); }
    const http::response_head& answer() const { return memory->answer_parser.head(); }
    const compiled_config& config() const { return *memory->config; }

    headgate::worker& worker;
    headgate::client& client;
    std::unique_ptr<request_memory> memory;
    received_request received;
    request_limits limits;
    upstream_exchange upstream;
    request_record record;
};

} // namespace headgate
