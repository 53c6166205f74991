#include "tests/gateway/support.hpp"

#include "config/load.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace headgate::tests {

namespace {

constexpr auto patience = std::chrono::seconds{30}; // reached only by a failure

bool same_name(std::string_view a, std::string_view b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](char x, char y) { return std::tolower(x) == std::tolower(y); });
}

config::gateway_config load(const std::string& yaml)
{
    auto loaded = config::load_text(yaml, "test.yaml");
    std::string problems;
    for (const auto& problem : loaded.problems)
        problems += to_string(problem) + "\n";
    if (!loaded.config)
        throw std::runtime_error(problems + yaml);
    return std::move(*loaded.config);
}

} // namespace

void file_descriptor::close()
{
    if (fd_ >= 0)
        ::close(fd_);
    fd_ = -1;
}

raw_connection::raw_connection(file_descriptor fd) : fd_(std::move(fd))
{
    const timeval limit{patience.count(), 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const int on = 1;
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

raw_connection raw_connection::to(std::uint16_t port)
{
    file_descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        throw std::runtime_error(std::string("connect: ") + std::strerror(errno));
    return raw_connection(std::move(fd));
}

void raw_connection::send(std::string_view bytes)
{
    while (!bytes.empty()) {
        const auto n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0)
            return; // the other side has closed; the test checks what it sent before
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
}

void raw_connection::send_bytewise(std::string_view bytes)
{
    for (const char c : bytes)
        send({&c, 1});
}

bool raw_connection::has_arrived() const
{
    int left = 1;
    return ::ioctl(fd_.get(), SIOCOUTQ, &left) == 0 && left == 0;
}

void raw_connection::finish_sending() { ::shutdown(fd_.get(), SHUT_WR); }

void raw_connection::reset()
{
    const linger hard{1, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    fd_.close();
}

void raw_connection::shrink_buffers()
{
    const int small = 4096;
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
}

std::string raw_connection::read_some(std::size_t most)
{
    if (!pending_.empty())
        return std::exchange(pending_, {});
    std::string bytes(most, '\0');
    const auto n = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    closed_ = n == 0 || (n < 0 && errno != EAGAIN);
    was_reset_ = n < 0 && errno == ECONNRESET;
    bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return bytes;
}

std::string raw_connection::read_all()
{
    std::string all;
    for (;;) {
        const auto some = read_some();
        if (some.empty())
            return all;
        all += some;
    }
}

std::string raw_connection::read_until(std::string_view mark)
{
    std::string all;
    for (;;) {
        const auto found = all.find(mark);
        if (found != std::string::npos) {
            pending_ = all.substr(found + mark.size()) + pending_;
            all.resize(found + mark.size());
            return all;
        }
        const auto some = read_some();
        if (some.empty())
            return all;
        all += some;
    }
}

std::string raw_connection::read_response(bool has_body)
{
    auto response = read_until("\r\n\r\n");
    const auto status = status_of(response);
    if (!has_body || status < 200 || status == 204 || status == 304)
        return response;
    if (same_name(field_of(response, "Transfer-Encoding"), "chunked"))
        return response + read_until("0\r\n\r\n");
    const auto length = field_of(response, "Content-Length");
    if (length.empty())
        return response + read_all();
    auto left = std::stoull(length);
    while (left > 0) {
        auto some = read_some();
        if (some.empty())
            break;
        if (some.size() > left) {
            pending_ = some.substr(left) + pending_;
            some.resize(left);
        }
        left -= some.size();
        response += some;
    }
    return response;
}

raw_upstream::raw_upstream(handler serve) : serve_(std::move(serve))
{
    listener_ = file_descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_.get(), 128) != 0)
        throw std::runtime_error(std::string("upstream: ") + std::strerror(errno));
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_loop(); });
}

raw_upstream::~raw_upstream()
{
    stopping_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (auto& t : threads_)
        t.join();
}

void raw_upstream::accept_loop()
{
    while (!stopping_) {
        file_descriptor fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (fd.get() < 0)
            return;
        ++connections_;
        threads_.emplace_back([this, connection = raw_connection(std::move(fd))]() mutable {
            serve_(*this, connection);
            connection.close();
            std::lock_guard guard(lock_);
            ++ended_;
            changed_.notify_all();
        });
    }
}

std::string raw_upstream::read_request(raw_connection& from)
{
    auto request = from.read_until("\r\n\r\n");
    record(request);
    const auto length = field_of(request, "Content-Length");
    for (auto left = length.empty() ? 0ull : std::stoull(length); left > 0;) {
        const auto some = from.read_some();
        if (some.empty())
            break;
        record(some);
        left -= some.size();
        request += some;
    }
    if (same_name(field_of(request, "Transfer-Encoding"), "chunked")) {
        const auto body = from.read_until("0\r\n\r\n");
        record(body);
        request += body;
    }
    return request;
}

void raw_upstream::record(std::string_view bytes)
{
    std::lock_guard guard(lock_);
    received_ += bytes;
    changed_.notify_all();
}

std::string raw_upstream::received() const
{
    std::lock_guard guard(lock_);
    return received_;
}

void raw_upstream::wait_for_received(std::size_t bytes) const
{
    std::unique_lock guard(lock_);
    changed_.wait_for(guard, patience, [&] { return received_.size() >= bytes; });
}

void raw_upstream::wait_for_ended(std::size_t handlers) const
{
    std::unique_lock guard(lock_);
    changed_.wait_for(guard, patience, [&] { return ended_ >= handlers; });
}

raw_upstream::handler always(std::string response)
{
    return [response = std::move(response)](raw_upstream& self, raw_connection& client) {
        while (!self.read_request(client).empty())
            client.send(response);
    };
}

std::size_t whole_message(std::string_view bytes)
{
    const auto head_end = bytes.find("\r\n\r\n");
    if (head_end == std::string_view::npos)
        return 0;
    auto at = head_end + 4;
    if (!same_name(field_of(bytes, "Transfer-Encoding"), "chunked")) {
        const auto length = field_of(bytes, "Content-Length");
        at += length.empty() ? 0 : std::stoull(length);
        return at <= bytes.size() ? at : 0;
    }
    for (;;) {
        const auto line_end = bytes.find("\r\n", at);
        if (line_end == std::string_view::npos)
            return 0;
        const auto size = std::stoull(std::string(bytes.substr(at, line_end - at)), nullptr, 16);
        at = line_end + 2 + size + 2;
        if (at > bytes.size())
            return 0;
        if (bytes.substr(at - 2, 2) != "\r\n")
            throw std::runtime_error("not a chunk the gateway may write: " + std::string(bytes));
        if (size == 0)
            return at;
    }
}

std::string plain_body(std::string_view message)
{
    auto body = body_of(message);
    if (!same_name(field_of(message, "Transfer-Encoding"), "chunked"))
        return body;
    std::string plain;
    for (std::size_t at = 0; at < body.size();) {
        const auto line_end = body.find("\r\n", at);
        const auto size = std::stoull(body.substr(at, line_end - at), nullptr, 16);
        plain += body.substr(line_end + 2, size);
        at = line_end + 2 + size + 2;
        if (size == 0)
            break;
    }
    return plain;
}

std::size_t count(std::string_view in, std::string_view what)
{
    std::size_t found = 0;
    for (auto at = in.find(what); at != std::string_view::npos; at = in.find(what, at + what.size()))
        ++found;
    return found;
}

recorder::recorder(std::string answer)
    : answer_(std::move(answer)), up_([this](raw_upstream&, raw_connection& from) { serve(from); })
{}

void recorder::serve(raw_connection& from)
{
    std::string bytes;
    for (;;) {
        const auto some = from.read_some();
        if (some.empty())
            break;
        bytes += some;
        up_.record(some);
        for (auto size = whole_message(bytes); size != 0; size = whole_message(bytes)) {
            {
                std::lock_guard guard(lock_);
                requests_.push_back(bytes.substr(0, size));
            }
            bytes.erase(0, size);
            from.send(answer_);
        }
    }
    std::lock_guard guard(lock_);
    unfinished_ += bytes;
}

std::vector<std::string> recorder::requests() const
{
    std::lock_guard guard(lock_);
    return requests_;
}

std::string recorder::last() const
{
    std::lock_guard guard(lock_);
    return requests_.empty() ? std::string{} : requests_.back();
}

std::string recorder::unfinished() const
{
    std::lock_guard guard(lock_);
    return unfinished_;
}

void check_refused(const std::vector<malformed>& rows, reaches upstream)
{
    const std::string next = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for (const auto& row : rows) {
        for (const bool bytewise : {false, true}) {
            CAPTURE(row.number);
            CAPTURE(row.bytes.substr(0, 300));
            CAPTURE(bytewise);
            recorder up;
            running_gateway gateway(running_gateway::in_front_of(up.server()));
            auto client = gateway.connect();
            if (bytewise)
                client.send_bytewise(row.bytes + next);
            else
                client.send(row.bytes + next);
            const auto result = client.read_all();
            CHECK(client.was_closed());
            CHECK(status_of(result) == row.status);
            CHECK(count(result, "\r\nDate: ") == 1); // A15
            CHECK(field_of(result, "Connection") == "close");
            CHECK(field_of(result, "Date") != ""); // C12
            client.close();
            up.wait_until_closed();
            CHECK(up.requests().empty());
            if (upstream == reaches::nothing)
                CHECK(up.connections() == 0);
        }
    }
}

std::size_t open_descriptors()
{
    std::size_t open = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        static_cast<void>(entry);
        ++open;
    }
    return open;
}

std::size_t open_pipe_ends()
{
    std::size_t found = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        found += std::filesystem::read_symlink(each, gone).string().starts_with("pipe:");
    }
    return found;
}

bool eventually(const std::function<bool()>& holds)
{
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!holds()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        std::this_thread::yield();
    }
    return true;
}

running_gateway::running_gateway(const std::string& yaml, const std::function<void(running_gateway&)>& before_start)
    : app_(load(yaml))
{
    if (before_start)
        before_start(*this);
    app_.start();
}

void running_gateway::reload(const std::string& yaml) { app_.reload(load(yaml)); }

std::string running_gateway::in_front_of(const raw_upstream& upstream, const std::string& more,
                                         const std::string& listener_options, const std::string& upstream_options)
{
    return "workers: 1\nlisteners:\n  - address: 127.0.0.1:0\n" + listener_options +
           "stores:\n  local: { type: memory, max_keys: 10000 }\n"
           "upstreams:\n  up:\n    servers: [ 127.0.0.1:" +
           std::to_string(upstream.port()) + " ]\n" + upstream_options +
           (more.find("routes:") == std::string::npos ? "routes:\n  - { name: all, upstream: up }\n" : "") + more;
}

std::string running_gateway::ask(std::string_view request) const
{
    auto client = connect();
    client.send(request);
    return client.read_response(!request.starts_with("HEAD "));
}

unsigned status_of(std::string_view response)
{
    return response.size() > 12 && response.starts_with("HTTP/1.1 ")
               ? static_cast<unsigned>(std::stoul(std::string(response.substr(9, 3))))
               : 0;
}

std::string field_of(std::string_view response, std::string_view name)
{
    const auto head = response.substr(0, response.find("\r\n\r\n"));
    for (std::size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at)) {
        at += 2;
        const auto line = head.substr(at, head.find("\r\n", at) - at);
        const auto colon = line.find(':');
        if (colon != std::string_view::npos && same_name(line.substr(0, colon), name)) {
            auto value = line.substr(colon + 1);
            while (value.starts_with(' '))
                value.remove_prefix(1);
            return std::string(value);
        }
    }
    return {};
}

std::string body_of(std::string_view response)
{
    const auto end = response.find("\r\n\r\n");
    return end == std::string_view::npos ? std::string{} : std::string(response.substr(end + 4));
}

} // namespace headgate::tests
