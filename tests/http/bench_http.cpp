// Measures the pure parts of a request in nanoseconds, to compare a change with the previous state. Built with
// HEADGATE_BENCH; best of several runs, one core.
#include "gateway/http/chunk_decoder.hpp"
#include "gateway/http/framing.hpp"
#include "gateway/http/head/head.hpp"
#include "gateway/http/head/head_scan.hpp"
#include "gateway/http/hop_headers.hpp"
#include "gateway/http/routes/router.hpp"
#include "gateway/http/target.hpp"

#include <boost/beast/http/basic_parser.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

using namespace headgate::http;

namespace {

volatile std::size_t sink;

template <class Work>
double nanoseconds(int rounds, Work work)
{
    double best = 1e18;
    for (int run = 0; run < 7; ++run) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < rounds; ++i)
            work(i);
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
        best = std::min(best, took.count() / rounds);
    }
    return best;
}

const std::string load_generator =
    "GET /api/v1/things/17 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nX-API-Key: key-000017\r\n\r\n";
const std::string browser =
    "GET /api/v1/things/17?page=2&sort=name HTTP/1.1\r\nHost: api.example.com\r\nConnection: keep-alive\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 "
    "Safari/537.36\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n"
    "Accept-Encoding: gzip, deflate, br\r\nAccept-Language: en-GB,en;q=0.9\r\nCache-Control: max-age=0\r\n"
    "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\nReferer: https://example.com/start\r\n"
    "Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nX-API-Key: 0123456789abcdef\r\n\r\n";

// Beast's parser with minimal work: it keeps views.
class beast_parser : public boost::beast::http::basic_parser<true>
{
public:
    std::vector<std::pair<std::string_view, std::string_view>> fields;
    std::string_view target;

private:
    using error_code = boost::beast::error_code;
    using text = boost::beast::string_view;
    using verb = boost::beast::http::verb;
    void on_request_impl(verb, text, text what, int, error_code&) override { target = {what.data(), what.size()}; }
    void on_response_impl(int, text, int, error_code&) override {}
    void on_field_impl(boost::beast::http::field, text name, text value, error_code&) override
    {
        fields.emplace_back(std::string_view{name.data(), name.size()}, std::string_view{value.data(), value.size()});
    }
    void on_header_impl(error_code&) override {}
    void on_body_init_impl(boost::optional<std::uint64_t> const&, error_code&) override {}
    std::size_t on_body_impl(text body, error_code&) override { return body.size(); }
    void on_chunk_header_impl(std::uint64_t, text, error_code&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, text body, error_code&) override { return body.size(); }
    void on_finish_impl(error_code&) override {}
};

void heads(const char* name, const std::string& bytes)
{
    request_parser parser;
    request_framing framing;
    request_target target;
    byte_buffer scratch, out;
    const auto scanned = nanoseconds(200'000, [&](int) {
        request_scan scan;
        request_head head;
        scan.feed(bytes, {}, head, nullptr);
        sink = scan.consumed();
    });
    const auto parsed = nanoseconds(200'000, [&](int) {
        parser.reset();
        parser.feed(bytes);
        sink = parser.head().fields.lines.size();
    });
    const auto checked = nanoseconds(200'000, [&](int) {
        parser.reset();
        parser.feed(bytes);
        sink = static_cast<std::size_t>(frame_request(parser.head(), 1 << 20, framing));
        sink = static_cast<std::size_t>(parse_target(parser.head().method_number, parser.head().target, target));
        sink = normalise_path(target.path, {}, scratch).size();
    });
    upstream_head_options options;
    options.path = target.path;
    options.query = target.query;
    options.host = framing.host;
    options.peer = "192.0.2.1";
    options.scheme = "http";
    options.original_host = framing.host;
    options.via = "headgate";
    options.connection = &framing.connection;
    const auto built = nanoseconds(200'000, [&](int) {
        out.clear();
        build_upstream_head(out, parser.head(), options);
        sink = out.size();
    });
    std::vector<std::pair<std::string_view, std::string_view>> kept;
    const auto beast = nanoseconds(200'000, [&](int) {
        beast_parser other; // Beast's parser cannot be reset; the capacity of the vector is kept
        other.fields.swap(kept);
        other.fields.clear();
        other.eager(false);
        boost::beast::error_code error;
        other.put(boost::asio::buffer(bytes), error);
        sink = other.fields.size();
        kept.swap(other.fields);
    });
    std::printf("%s (%zu bytes): head %.0f ns (scan alone %.0f, Beast alone %.0f), with framing and target %.0f ns, "
                "next head %.0f ns\n",
                name, bytes.size(), parsed, scanned, beast, checked, built);
}

void routes(int count)
{
    std::vector<route_pattern> patterns;
    std::vector<std::string> paths;
    for (int i = 0; i < count; ++i) {
        const auto name = "/service-" + std::to_string(i);
        patterns.push_back({.path = i % 2 == 0 ? name + "/*" : name + "/items/{id}", .methods = {"GET", "POST"}});
        paths.push_back(name + "/items/42");
    }
    const router table(patterns);
    // The paths lie next to each other in memory, as in a read buffer: only the cache misses of the router count.
    std::mt19937 random(1);
    std::vector<std::array<char, 64>> targets(1 << 14);
    for (auto& path : targets)
        std::snprintf(path.data(), path.size(), "%s", paths[random() % paths.size()].c_str());
    route_match match;
    const auto took = nanoseconds(1 << 14, [&](int i) {
        const std::string_view path(targets[static_cast<std::size_t>(i)].data());
        table.find({"api.example.com", path, method_id::get, "GET", nullptr}, match);
        sink = match.route;
    });
    const auto fixed = nanoseconds(1 << 14, [&](int) {
        table.find({"api.example.com", paths[0], method_id::get, "GET", nullptr}, match);
        sink = match.route;
    });
    std::printf("%d routes: %.0f ns at random, %.0f ns always the same\n", count, took, fixed);
}

} // namespace

int main()
{
    heads("load generator", load_generator);
    heads("browser", browser);
    for (const int count : {10, 100, 1000, 10'000})
        routes(count);
}
