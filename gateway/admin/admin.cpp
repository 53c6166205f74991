#include "gateway/admin/admin.hpp"

#include "gateway/http/errors.hpp"

#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <prometheus/text_serializer.h>
#include <spdlog/spdlog.h>

#include <system_error>

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

admin_answer show_readiness(const readiness& state)
{
    http::byte_buffer body;
    body.append("{\"ready\":", state.reasons.empty() ? "true," : "false,");
    append_list(body, "reasons", state.reasons);
    body.append(',');
    append_list(body, "warnings", state.warnings);
    body.append("}\n");
    return {state.reasons.empty() ? 200u : 503u, "application/json", std::string(body.view())};
}

} // namespace

bool same_secret(std::string_view a, std::string_view b)
{
    if (a.size() != b.size())
        return false;
    unsigned difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        difference |= static_cast<unsigned>(a[i] ^ b[i]);
    return difference == 0;
}

admin::admin(const config::admin_config& config, sources from)
    : from_(std::move(from)), address_(config.address), token_(config.token), acceptor_(io_.get_executor()),
      pause_(io_.get_executor())
{
    try {
        const asio::ip::tcp::endpoint endpoint(asio::ip::make_address(address_.host), address_.port);
        acceptor_.open(endpoint.protocol());
        acceptor_.set_option(acceptor_type::reuse_address(true));
        acceptor_.bind(endpoint);
        acceptor_.listen();
        address_.port = acceptor_.local_endpoint().port();
    } catch (const boost::system::system_error& error) {
        throw std::system_error(std::error_code(error.code()), "cannot listen for admin on " + address_.text());
    }
}

void admin::start()
{
    thread_ = std::thread([this] {
        spawn(io_.get_executor(), accept_clients());
        io_.run();
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
        for (auto* s : open_)
            s->close();
    });
    thread_.join();
}

void admin::use_token(const config::secret& token)
{
    std::lock_guard guard(lock_);
    token_ = token;
}

task<> admin::accept_clients()
{
    for (;;) {
        socket_type socket(io_.get_executor());
        const auto [error] = co_await acceptor_.async_accept(socket, as_result);
        if (!acceptor_.is_open())
            co_return;
        if (!error && open_.size() < most_clients) {
            spawn(io_.get_executor(), serve(std::move(socket)));
            continue;
        }
        if (error) { // most likely no file descriptors are left: wait instead of spinning
            pause_.expires_after(out_of_descriptors_pause);
            co_await pause_.async_wait(as_result);
            if (!acceptor_.is_open())
                co_return;
        }
    }
}

task<> admin::serve(socket_type socket)
{
    stream client(std::move(socket));
    open_.insert(&client);
    beast::flat_buffer buffer(largest_head + largest_body);
    bool again = true;
    while (again && acceptor_.is_open()) {
        messages::request_parser<messages::string_body> parser;
        parser.header_limit(largest_head);
        parser.body_limit(largest_body);
        client.expires_after(time_for_a_request);
        const auto [failed, read] = co_await messages::async_read(client, buffer, parser, as_result);
        if (failed)
            break;
        const auto& request = parser.get();
        const std::string_view method(request.method_string().data(), request.method_string().size());
        const auto field = request[messages::field::authorization];
        auto result = answer(method, {request.target().data(), request.target().size()}, {field.data(), field.size()});

        messages::response<messages::string_body> response(static_cast<messages::status>(result.status),
                                                           request.version());
        response.set(messages::field::content_type, result.content_type);
        response.set(messages::field::cache_control, "no-store");
        if (result.status == 401)
            response.set(messages::field::www_authenticate, "Bearer");
        if (result.status == 405)
            response.set(messages::field::allow, "GET, HEAD");
        response.keep_alive(request.keep_alive());
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
        again = is_sent && response.keep_alive();
    }
    open_.erase(&client);
    client.close();
}

bool admin::may_enter(std::string_view authorization) const
{
    std::lock_guard guard(lock_);
    if (token_.empty())
        return true;
    constexpr std::string_view scheme = "bearer ";
    const auto is_bearer = authorization.size() > scheme.size() &&
                           beast::iequals({authorization.data(), scheme.size()}, {scheme.data(), scheme.size()});
    return is_bearer && same_secret(authorization.substr(scheme.size()), token_.reveal());
}

admin_answer admin::answer(std::string_view method, std::string_view target, std::string_view authorization) const
{
    if (!may_enter(authorization))
        return {.status = 401, .body = "a bearer token is required\n"};
    if (method != "GET" && method != "HEAD")
        return {.status = 405, .body = "only GET and HEAD\n"};
    const auto path = target.substr(0, target.find('?'));
    try {
        if (path == "/healthz")
            return {.body = "ok\n"};
        if (path == "/readyz")
            return show_readiness(from_.ready());
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
