#include "gateway/http/client_address.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

using namespace headgate::http;

namespace {

std::string text(const ip_address& address)
{
    address_text buffer;
    return std::string(format_address(address, buffer));
}

client_address_rules trusting(std::initializer_list<std::string_view> prefixes,
                              hop_source source = hop_source::x_forwarded_for)
{
    client_address_rules rules;
    rules.source = source;
    for (const auto prefix : prefixes)
        CHECK(rules.trusted_proxies.add(prefix));
    return rules;
}

std::string client(std::string_view peer, std::vector<std::pair<std::string, std::string>> headers,
                   const client_address_rules& rules)
{
    field_list fields;
    for (const auto& [name, value] : headers) {
        fields.lines.push_back({name, value, find_field_id(name), false});
        fields.present |= bit(find_field_id(name));
    }
    return text(find_client_address(*parse_hop(peer), fields, rules).address);
}

} // namespace

TEST_CASE("K1: the client is the peer, unless the peer is trusted; then the nearest hop that is not trusted")
{
    const auto rules = trusting({"10.0.0.0/8", "2001:db8::/32"});
    CHECK(client("9.9.9.9", {{"X-Forwarded-For", "1.1.1.1"}}, rules) == "9.9.9.9");
    CHECK(client("10.0.0.1", {}, rules) == "10.0.0.1");
    CHECK(client("10.0.0.1", {{"X-Forwarded-For", "1.1.1.1"}}, rules) == "1.1.1.1");
    CHECK(client("10.0.0.1", {{"X-Forwarded-For", "6.6.6.6, 1.1.1.1"}}, rules) == "1.1.1.1");
    CHECK(client("10.0.0.1", {{"X-Forwarded-For", "6.6.6.6, 1.1.1.1, 10.2.3.4"}}, rules) == "1.1.1.1");
    CHECK(client("10.0.0.1", {{"X-Forwarded-For", "6.6.6.6, 1.1.1.1, 2001:db8::7 ,10.2.3.4"}}, rules) == "1.1.1.1");
    CHECK(client("10.0.0.1",
                 {{"X-Forwarded-For", "6.6.6.6"}, {"x-forwarded-for", "1.1.1.1"}, {"X-Forwarded-For", "10.1.1.1"}},
                 rules) == "1.1.1.1");
    CHECK(client("10.0.0.1", {{"X-Forwarded-For", "10.3.3.3, 10.4.4.4"}}, rules) == "10.3.3.3");
}

TEST_CASE("K1: a malformed entry ends the walk at the last valid one")
{
    const auto rules = trusting({"10.0.0.0/8"});
    for (const auto junk :
         {"unknown", "1.1.1", "1.1.1.1.1", "300.1.1.1", "01.1.1.1", "1.1.1.1:", "1.1.1.1:99999", "[::1", "::g",
          "_hidden", "1.1.1.1 2.2.2.2", "\"1.1.1.1\"", "0x7f.1.1.1", ":::", "1::2::3"}) {
        INFO(junk);
        CHECK(client("10.0.0.1", {{"X-Forwarded-For", "6.6.6.6, " + std::string(junk)}}, rules) == "10.0.0.1");
        CHECK(client("10.0.0.1", {{"X-Forwarded-For", "6.6.6.6, " + std::string(junk) + ", 10.5.5.5"}}, rules) ==
              "10.5.5.5");
    }
    CHECK(client("10.0.0.1", {{"X-Forwarded-For", "1.1.1.1, ,"}}, rules) == "1.1.1.1");
}

TEST_CASE("K2: other headers with an address have no effect")
{
    const auto rules = trusting({"10.0.0.0/8"});
    for (const auto name : {"Forwarded", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP"})
        CHECK(client("10.0.0.1", {{name, "for=6.6.6.6"}, {"X-Forwarded-For", "1.1.1.1"}}, rules) == "1.1.1.1");
    const auto rfc7239 = trusting({"10.0.0.0/8"}, hop_source::forwarded);
    CHECK(client("10.0.0.1", {{"X-Forwarded-For", "6.6.6.6"}}, rfc7239) == "10.0.0.1");
    CHECK(client("10.0.0.1", {{"Forwarded", "for=6.6.6.6, For=\"[2001:db8::1]:4711\";proto=https, for=10.1.1.1;by=x"}},
                 rfc7239) == "2001:db8::1");
    CHECK(client("10.0.0.1", {{"Forwarded", "for=6.6.6.6, for=\"1.1.1.1, for=10.9.9.9\""}}, rfc7239) == "10.0.0.1");
    CHECK(client("10.0.0.1", {{"Forwarded", "for=6.6.6.6, for=unknown"}}, rfc7239) == "10.0.0.1");
    CHECK(client("10.0.0.1", {{"Forwarded", "for=6.6.6.6, proto=http"}}, rfc7239) == "10.0.0.1");
}

TEST_CASE("K2: the elements of Forwarded are read as RFC 7239 writes them")
{
    const auto rules = trusting({"10.0.0.0/8"}, hop_source::forwarded);
    const auto of = [&](const std::string& value) { return client("10.0.0.1", {{"Forwarded", value}}, rules); };
    CHECK(of("for=1.1.1.1") == "1.1.1.1");
    CHECK(of("FOR = 1.1.1.1 ; by=x") == "1.1.1.1");
    CHECK(of("by=x;for=1.1.1.1") == "1.1.1.1");
    CHECK(of("for=\"1.1.1.1:4711\"") == "1.1.1.1");
    CHECK(of("for=1.1.1.1, , ,") == "1.1.1.1"); // an empty element is no hop
    CHECK(of("for=1.1.1.1, for=10.2.2.2, for=10.3.3.3") == "1.1.1.1");
    CHECK(of("for=6.6.6.6, for=1.1.1.1, for=10.3.3.3") == "1.1.1.1");
    CHECK(of("for=10.2.2.2, for=10.3.3.3") == "10.2.2.2");
    CHECK(of("for=10.2.2.2, proto=http, for=10.3.3.3, for=10.4.4.4") ==
          "10.3.3.3"); // ends at the hop without an address
    CHECK(of("for=10.2.2.2, for=unknown") == "10.0.0.1");
    CHECK(of("for=6.6.6.6, by=\", for=10.3.3.3") == "10.0.0.1"); // a quote that does not end
    CHECK(of("for=6.6.6.6;x=\", for=1.1.1.1") == "10.0.0.1");    // a client's, which hides what a proxy has appended
    CHECK(of("for=6.6.6.6, by=\"\\\", for=10.3.3.3\";for=1.1.1.1") == "1.1.1.1");
    CHECK(of("by=\"a;for=6.6.6.6\";for=1.1.1.1") == "1.1.1.1");
    CHECK(of("for=6.6.6.6;for=1.1.1.1") == "1.1.1.1");
    CHECK(of("for=") == "10.0.0.1");
    CHECK(of("") == "10.0.0.1");
    const auto several = [&](std::vector<std::pair<std::string, std::string>> lines) {
        return client("10.0.0.1", std::move(lines), rules);
    };
    CHECK(several({{"Forwarded", "for=6.6.6.6"}, {"Forwarded", "for=1.1.1.1"}, {"Forwarded", "for=10.1.1.1"}}) ==
          "1.1.1.1");
    CHECK(several({{"Forwarded", "for=6.6.6.6"}, {"Forwarded", "for=unknown"}, {"Forwarded", "for=10.1.1.1"}}) ==
          "10.1.1.1");
    CHECK(several({{"Forwarded", "for=1.1.1.1"}, {"Forwarded", ","}, {"Forwarded", ""}}) == "1.1.1.1");
}

TEST_CASE("K2: a long Forwarded takes time in proportion to its length")
{
    const auto rules = trusting({"10.0.0.0/8"}, hop_source::forwarded);
    const auto least_time = [&](const std::string& piece, std::size_t bytes) {
        std::string value;
        while (value.size() < bytes)
            value += piece;
        field_list fields;
        fields.lines.push_back({"Forwarded", value, field_id::forwarded, false});
        fields.present |= bit(field_id::forwarded);
        auto least = std::chrono::steady_clock::duration::max();
        for (int i = 0; i < 5; ++i) {
            const auto began = std::chrono::steady_clock::now();
            find_client_address(*parse_hop("10.0.0.1"), fields, rules);
            least = std::min(least, std::chrono::steady_clock::now() - began);
        }
        return static_cast<double>(least.count());
    };
    // Eight times as long: eight times the work when it is linear, 64 times when it is quadratic.
    for (const std::string piece : {",", ";", "for=10.1.1.1,", "for=10.1.1.1;", "\"\\\"\",", " ", "\t,"}) {
        CAPTURE(piece);
        CHECK(least_time(piece, 60'000) < 24 * least_time(piece, 7'500));
    }
}

TEST_CASE("K3: IPv6 clients are counted by network")
{
    CHECK(text(aggregate(*parse_hop("2001:db8:1:2:3:4:5:6"))) == "2001:db8:1:2::");
    CHECK(text(aggregate(*parse_hop("2001:db8:1:2:3:4:5:6"), 32, 56)) == "2001:db8:1::");
    CHECK(text(aggregate(*parse_hop("2001:db8:1:2:3:4:5:6"), 32, 128)) == "2001:db8:1:2:3:4:5:6");
    CHECK(text(aggregate(*parse_hop("1.2.3.4"))) == "1.2.3.4");
    CHECK(text(aggregate(*parse_hop("::ffff:1.2.3.4"), 24)) == "1.2.3.0");
    CHECK(text(aggregate(*parse_hop("1.2.3.4"), 0)) == "0.0.0.0");
}
