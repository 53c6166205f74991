#include "gateway/http/upgrade.hpp"
#include "tests/http/support.hpp"

using namespace headgate::http;
using namespace headgate::http::test;

namespace {

std::string upgrade_code(std::string_view bytes)
{
    const auto request = parse_request(bytes);
    REQUIRE(request->state == parse_state::done);
    request_framing framing;
    REQUIRE(frame_request(request->head(), 100, framing) == http_error::none);
    upgrade_kind kind;
    const auto error = read_upgrade(request->head(), framing, kind);
    if (error != http_error::none)
        return std::string(describe(error).code);
    return kind == upgrade_kind::websocket ? "websocket" : "none";
}

const std::string handshake = "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n";
const std::string version = "Sec-WebSocket-Version: 13\r\n";
const std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

} // namespace

TEST_CASE("C7: only a complete WebSocket handshake upgrades")
{
    CHECK(upgrade_code(get_with(handshake + version + key)) == "websocket");
    CHECK(upgrade_code(get_with("Upgrade: websocket\r\n" + version + key)) == "none");
    CHECK(upgrade_code(get_with("Connection: Upgrade\r\nUpgrade: h2c\r\n" + version + key)) == "none");
    CHECK(upgrade_code(get_with("Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n" + version + key)) == "none");
    CHECK(upgrade_code(post_with(handshake + version + key)) == "none");
    CHECK(upgrade_code("GET / HTTP/1.0\r\nHost: a\r\n" + handshake + version + key + "\r\n") == "none");
    CHECK(upgrade_code(get_with(handshake + key)) == "upgrade_version");
    CHECK(upgrade_code(get_with(handshake + "Sec-WebSocket-Version: 8\r\n" + key)) == "upgrade_version");
    CHECK(upgrade_code(get_with(handshake + version + version + key)) == "upgrade_version");
    CHECK(upgrade_code(get_with(handshake + version)) == "bad_upgrade");
    CHECK(upgrade_code(get_with(handshake + version + key + key)) == "bad_upgrade");
    for (const auto bad : {"", "short", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZR==",
                           "dGhlIHNhbXBsZSBub25j!Q==", "AAAAAAAAAAAAAAAAAAAAAAAA"})
        CHECK(upgrade_code(get_with(handshake + version + "Sec-WebSocket-Key: " + bad + "\r\n")) == "bad_upgrade");
    CHECK(upgrade_code(get_with(handshake + version + key + "Content-Length: 5\r\n")) == "bad_upgrade");
    CHECK(describe(http_error::upgrade_version).status == 426);
}

TEST_CASE("C7: nothing is tunnelled before a 101 that matches the key")
{
    const auto accept = websocket_accept("dGhlIHNhbXBsZSBub25jZQ==");
    CHECK(std::string_view(accept.data(), accept.size()) == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    const auto accepted = [](std::string_view bytes) {
        const auto response = parse_response(bytes);
        response_framing framing;
        REQUIRE(frame_response(method_id::get, response->head(), framing) == http_error::none);
        return accepts_websocket(response->head(), framing.connection, "dGhlIHNhbXBsZSBub25jZQ==");
    };
    const std::string good = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
    const std::string hop = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    CHECK(accepted("HTTP/1.1 101 SP\r\n" + hop + good + "\r\n"));
    CHECK_FALSE(accepted("HTTP/1.1 200 OK\r\n" + hop + good + "\r\n"));
    CHECK_FALSE(accepted("HTTP/1.1 101 SP\r\n" + good + "\r\n"));
    CHECK_FALSE(accepted("HTTP/1.1 101 SP\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n" + good + "\r\n"));
    CHECK_FALSE(accepted("HTTP/1.1 101 SP\r\n" + hop + "Sec-WebSocket-Accept: x\r\n\r\n"));
    CHECK_FALSE(accepted("HTTP/1.1 101 SP\r\n" + hop + good + good + "\r\n"));
}
