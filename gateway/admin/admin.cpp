#include "gateway/admin/admin.hpp"

#include "gateway/http/errors.hpp"

#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <prometheus/text_serializer.h>
#include <spdlog/spdlog.h>

namespace headgate {

namespace {

namespace beast = boost::beast;
namespace messages = boost::beast::http;

constexpr std::chrono::seconds time_for_a_request{10}; // idle time included
constexpr std::chrono::milliseconds out_of_descriptors_pause{100};
constexpr std::size_t most_clients = 64;
constexpr std::uint32_t largest_head = 8 * 1024;
constexpr std::uint64_t largest_body = 64 * 1024;

void append_list(http::byte_buffer& out, std::string_view name, const std::vector<std::string>& texts)
{
    out.append("\"", name, "\":[");
    for (std::size_t i = 0; i < texts.size(); ++i) {
        out.append(i == 0 ? "\"" : ",\"");
        http::append_json_escaped(out, texts[i]);
        out.append('"');
    }
    out.append(']');
}

admin_answer show_readiness(const readiness& state, bool with_reasons)
{
    http::byte_buffer body;
    body.append("{\"ready\":", state.reasons.empty() ? "true" : "false");
    if (with_reasons) {
        body.append(',');
        append_list(body, "reasons", state.reasons);
        body.append(',');
        append_list(body, "warnings", state.warnings);
    }
    body.append("}\n");
    return {state.reasons.empty() ? 200u : 503u, "application/json", std::string(body.view())};
}

// Returns the value of the field, or an empty text when it is absent or repeated.
std::string_view only_field(const messages::request<messages::string_body>& of, messages::field name)
{
    const auto value = of[name];
    return of.count(name) == 1 ? std::string_view(value.data(), value.size()) : std::string_view{};
}

} // namespace

admin::admin(const config::admin_config& config, listening_sockets at, sources from)
    : from_(std::move(from)), address_(std::move(at.address)), config_(config), acceptor_(io_.get_executor()),
      pause_(io_.get_executor())
{
    const bool is_v6 = address_.host.find(':') != std::string::npos;
    acceptor_.assign(is_v6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), at.sockets.front().release());
}

void admin::start()
{
    thread_ = std::thread([this] {
        spawn(io_.get_executor(), accept_clients());
        io_.run();
        has_ended_ = true;
    });
}

void admin::stop()
{
    if (!thread_.joinable())
        return;
    asio::post(io_, [this] {
        error_code ignored;
        acceptor_.close(ignored);
        pause_.cancel();
        for (auto& each : open_)
            each.client.close();
    });
    thread_.join();
}

void admin::retire()
{
    asio::post(io_, [this] {
        error_code ignored;
        acceptor_.close(ignored);
        pause_.cancel();
        for (auto& each : open_) {
            if (!each.has_request)
                each.client.close();
        }
    });
}

void admin::use(const config::admin_config& config)
{
    std::lock_guard guard(lock_);
    config_ = config;
}

// Silent clients must not keep a health check from its answer.
void admin::make_room()
{
    if (open_.size() < most_clients)
        return;
    auto& oldest = open_.front();
    open_.pop_front();
    oldest.client.close();
}

task<> admin::accept_clients()
{
    for (;;) {
        socket_type socket(io_.get_executor());
        const auto [error] = co_await acceptor_.async_accept(socket, as_result);
        if (!acceptor_.is_open())
            co_return;
        if (!error) {
            make_room();
            spawn(io_.get_executor(), serve(std::move(socket)));
        } else { // most likely no file descriptors are left: wait instead of spinning
            pause_.expires_after(out_of_descriptors_pause);
            co_await pause_.async_wait(as_result);
            if (!acceptor_.is_open())
                co_return;
        }
    }
}

task<> admin::serve(socket_type socket)
{
    connection self(std::move(socket));
    auto& client = self.client;
    open_.push_back(self);
    beast::flat_buffer buffer(largest_head + largest_body);
    bool again = true;
    while (again && acceptor_.is_open()) {
        messages::request_parser<messages::string_body> parser;
        parser.header_limit(largest_head);
        parser.body_limit(largest_body);
        client.expires_after(time_for_a_request);
        const auto [failed, read] = co_await messages::async_read(client, buffer, parser, as_result);
        if (failed || !self.is_linked()) // it has made room for another
            break;
        self.has_request = true;
        open_.splice(open_.end(), open_, open_.iterator_to(self));
        const auto& request = parser.get();
        const std::string_view method(request.method_string().data(), request.method_string().size());
        auto result = answer(method, {request.target().data(), request.target().size()},
                             access_for(only_field(request, messages::field::host),
                                        only_field(request, messages::field::authorization)));

        messages::response<messages::string_body> response(static_cast<messages::status>(result.status),
                                                           request.version());
        response.set(messages::field::content_type, result.content_type);
        response.set(messages::field::cache_control, "no-store");
        if (result.status == 401)
            response.set(messages::field::www_authenticate, "Bearer");
        if (result.status == 405)
            response.set(messages::field::allow, "GET, HEAD");
        response.keep_alive(request.keep_alive() && acceptor_.is_open());
        const bool head_only = method == "HEAD";
        response.body() = std::move(result.body);
        response.prepare_payload();
        messages::response_serializer<messages::string_body> serializer(response);
        client.expires_after(time_for_a_request);
        bool is_sent = false;
        if (head_only) {
            const auto [error, sent] = co_await messages::async_write_header(client, serializer, as_result);
            is_sent = !error;
        } else {
            const auto [error, sent] = co_await messages::async_write(client, serializer, as_result);
            is_sent = !error;
        }
        self.has_request = false;
        again = is_sent && response.keep_alive();
    }
    client.close();
}

admin_access admin::access_for(std::string_view host, std::string_view authorization) const
{
    std::lock_guard guard(lock_);
    return decide_access(config_, host, authorization);
}

admin_answer admin::answer(std::string_view method, std::string_view target, admin_access access) const
{
    const auto path = target.substr(0, target.find('?'));
    const bool is_probe = path == "/healthz" || path == "/readyz"; // load balancers have no token and any Host
    if (!is_probe && access == admin_access::needs_token)
        return {.status = 401, .body = "a bearer token is required\n"};
    if (!is_probe && access == admin_access::wrong_host)
        return {.status = 403,
                .body = "the Host of this request is not an IP address, localhost or a name in admin.hosts; use one "
                        "of these, or configure a token and send it\n"};
    if (method != "GET" && method != "HEAD")
        return {.status = 405, .body = "only GET and HEAD\n"};
    try {
        if (path == "/healthz")
            return {.body = "ok\n"};
        if (path == "/readyz")
            return show_readiness(from_.ready(), access == admin_access::granted);
        if (path == "/metrics")
            return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
                    .body = prometheus::TextSerializer().Serialize(from_.metrics.Collect())};
    } catch (const std::exception& error) {
        spdlog::error("admin {}: {}", path, error.what());
        return {.status = 500, .body = "internal error\n"};
    }
    return {.status = 404, .body = "not found; the paths are /healthz, /readyz and /metrics\n"};
}

} // namespace headgate
