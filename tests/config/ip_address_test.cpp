#include "config/ip_address.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace headgate::config;

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

} // namespace

TEST_CASE("an address has one text, however it was written")
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

TEST_CASE("a network holds both spellings of an IPv4 address, and a text with a mistake is not a network")
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

TEST_CASE("the cache of texts gives each address its own text, whatever was asked for before")
{
    address_texts texts;
    std::vector<ip_address> many{{}, *parse_ipv6("::1"), *parse_ipv6("2001:db8::1:0:0:1")};
    for (std::uint32_t i = 0; i < 300; ++i) { // more than the cache has entries
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
