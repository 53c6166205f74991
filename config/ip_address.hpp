// IPv4 and IPv6 addresses as 16 bytes, and sets of networks. An IPv4 address and its ::ffff: form are one address.
// Text in and out, no resolver.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace headgate::config {

struct ip_address
{
    // Network order as two words: comparing and masking are two instructions. IPv4 is ::ffff:a.b.c.d.
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    bool operator==(const ip_address&) const = default;

    static constexpr ip_address v4(std::uint32_t address) noexcept { return {0, 0xffff00000000U | address}; }
    static ip_address from_bytes(const std::array<std::uint8_t, 16>& bytes) noexcept; // as in sockaddr_in6
    constexpr bool is_v4() const noexcept { return high == 0 && low >> 32 == 0xffff; }
    // Keeps the first `bits`; for IPv4 they are counted from 32.
    ip_address prefix(unsigned bits) const noexcept;
};

std::optional<ip_address> parse_ipv4(std::string_view text) noexcept; // four decimals without leading zeros
std::optional<ip_address> parse_ipv6(std::string_view text) noexcept; // no brackets; a zone id is dropped
// IPv4 or IPv6, without brackets and without a zone id.
std::optional<ip_address> parse_address(std::string_view text) noexcept;

// One hop as proxies write it: "1.2.3.4", "1.2.3.4:5555", "v6", "[v6]", "[v6]:p", each v6 with or without a zone id.
std::optional<ip_address> parse_hop(std::string_view text) noexcept;

// RFC 5952, without brackets. Views `buffer`.
using address_text = std::array<char, 46>;
std::string_view format_address(const ip_address& address, address_text& buffer) noexcept;

// A cache of addresses as text: that of a client is written twice per request.
class address_texts
{
public:
    // Valid until the next call.
    std::string_view of(const ip_address& address) noexcept
    {
        auto& at = slots_[(address.high + address.low) * 0x9e3779b97f4a7c15U >> 58];
        if (at.size == 0 || !(at.address == address)) {
            at.address = address;
            at.size = static_cast<std::uint8_t>(format_address(address, at.text).size());
        }
        return {at.text.data(), at.size};
    }

private:
    struct alignas(64) slot
    {
        ip_address address;
        address_text text;
        std::uint8_t size = 0; // 0: empty
    };
    std::array<slot, 64> slots_;
};

// The addresses that share their first `bits` bits with `first`.
struct ip_range
{
    ip_address first;
    unsigned bits = 128; // of the 128, so 10.0.0.0/8 has 104

    bool contains(const ip_address& address) const noexcept;
    bool operator==(const ip_range&) const = default;
};

struct parsed_ip_range
{
    ip_range range;
    std::string_view complaint; // why `range` is not valid; empty on success
};

// "10.0.0.0/8", "2001:db8::/32", or one address.
parsed_ip_range parse_ip_range(std::string_view text) noexcept;

// A small set: contains() compares with one range after the other.
class address_set
{
public:
    void add(const ip_range& range) { ranges_.push_back(range); }
    // Returns false, and adds nothing, when `text` is not a range.
    bool add(std::string_view text);
    bool contains(const ip_address& address) const noexcept;
    bool empty() const noexcept { return ranges_.empty(); }

private:
    std::vector<ip_range> ranges_;
};

} // namespace headgate::config
