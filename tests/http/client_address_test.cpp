#include "gateway/http/client_address.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace headgate::http;

namespace {

std::string text(const ip_address& address)
{
    address_text buffer;
    return std::string(format_address(address, buffer));
}
std::string hop(std::string_view written)
{
    const auto address = parse_hop(written);
    return address ? text(*address) : "-";
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

TEST_CASE("addresses as text at hand: each as if it were written anew, whoever was asked for before")
{
    address_texts texts;
    std::vector<ip_address> many{{}, *parse_ipv6("::1"), *parse_ipv6("2001:db8::1:0:0:1")};
    for (std::uint32_t i = 0; i < 300; ++i) { // more than there are places
        many.push_back(ip_address::v4(0x0a000000 + i * 7919));
        many.push_back({0x20010db800000000U + i, i});
    }
    for (int round = 0; round < 2; ++round) {
        for (const auto& address : many) {
            CHECK(texts.of(address) == text(address));
            CHECK(texts.of(address) == text(address));
        }
    }
}

TEST_CASE("K1: the client is the peer, unless the peer is trusted; then the nearest hop that is not")
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

TEST_CASE("K1: an entry that cannot be read ends the walk at the last good one")
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

TEST_CASE("K2: other headers that claim an address change nothing")
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

TEST_CASE("K3: one address has one text, whatever it was written like")
{
    CHECK(hop("1.2.3.4") == "1.2.3.4");
    CHECK(hop("1.2.3.4:5555") == "1.2.3.4");
    CHECK(hop("::ffff:1.2.3.4") == "1.2.3.4");
    CHECK(hop("[::ffff:102:304]:80") == "1.2.3.4");
    CHECK(hop("[2001:DB8:0:0::1]:443") == "2001:db8::1");
    CHECK(hop("2001:db8::1%eth0") == "2001:db8::1");
    CHECK(hop("fe80::1%25") == "fe80::1");
    CHECK(hop("::") == "::");
    CHECK(hop("::1") == "::1");
    CHECK(hop("1::") == "1::");
    CHECK(hop("1:0:0:2:0:0:0:3") == "1:0:0:2::3");
    CHECK(hop("1:0:2:3:4:5:6:7") == "1:0:2:3:4:5:6:7");
    CHECK(hop("0:0:1:0:0:0:0:0") == "0:0:1::");
    CHECK(hop("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff") == "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    for (const auto bad : {"", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8:9",
                           "12345::", "::1:", ":1::", "1.2.3.4::", "::1.2.3", "::1.2.3.4:5", "::%", "[1.2.3.4]",
                           "[::1]80", "[::1]:", "1:2:3:4:5:6:7:1.2.3.4"}) {
        INFO(bad);
        CHECK(hop(bad) == "-");
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

TEST_CASE("K3: prefixes hold both spellings of an IPv4 address, and nothing sloppy")
{
    address_set set;
    CHECK(set.add("10.0.0.0/8"));
    CHECK(set.add("::1"));
    CHECK(set.add("2001:db8::/33"));
    CHECK(set.contains(*parse_hop("::ffff:10.255.1.1")));
    CHECK_FALSE(set.contains(*parse_hop("11.0.0.0")));
    CHECK(set.contains(*parse_hop("::1")));
    CHECK(set.contains(*parse_hop("2001:db8:7fff::1")));
    CHECK_FALSE(set.contains(*parse_hop("2001:db8:8000::1")));
    for (const auto bad :
         {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::/129", "x", "", "10.0.0/8", "fe80::%eth0/64"})
        CHECK_FALSE(set.add(bad));
    CHECK(ip_address::from_bytes({0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}) ==
          *parse_hop("2001:db8::1"));
}
