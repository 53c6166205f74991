#include "config/ip_address.hpp"

#include <algorithm>
#include <charconv>

namespace headgate::config {

namespace {

// Reads all of `text` as a number that is at most `max`.
std::optional<unsigned> read_number(std::string_view text, int base, unsigned max) noexcept
{
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size() || value > max)
        return std::nullopt;
    return value;
}

// Keeps the first `bits` of 128.
ip_address masked(const ip_address& address, unsigned bits)
{
    const auto keep = [](unsigned count) { return count == 0 ? 0 : ~std::uint64_t{0} << (64 - count); };
    return bits <= 64 ? ip_address{address.high & keep(bits), 0}
                      : ip_address{address.high, address.low & keep(bits - 64)};
}

void set_group(ip_address& address, unsigned index, std::uint64_t value)
{
    auto& word = index < 4 ? address.high : address.low;
    word |= value << (48 - 16 * (index % 4));
}
unsigned group(const ip_address& address, unsigned index)
{
    const auto word = index < 4 ? address.high : address.low;
    return static_cast<unsigned>(word >> (48 - 16 * (index % 4)) & 0xffff);
}

// Reads the groups on one side of "::", or of the whole address. Returns how many there are, or -1.
int read_groups(std::string_view text, std::array<std::uint16_t, 8>& groups)
{
    unsigned count = 0;
    while (!text.empty()) {
        const auto colon = text.find(':');
        const auto part = text.substr(0, colon);
        const bool last = colon == std::string_view::npos;
        if (last && part.find('.') != std::string_view::npos) {
            const auto v4 = parse_ipv4(part);
            if (!v4 || count > 6)
                return -1;
            groups[count++] = static_cast<std::uint16_t>(v4->low >> 16);
            groups[count++] = static_cast<std::uint16_t>(v4->low);
            return static_cast<int>(count);
        }
        const auto value = part.size() <= 4 && count < 8 ? read_number(part, 16, 0xffff) : std::nullopt;
        if (!value)
            return -1;
        groups[count++] = static_cast<std::uint16_t>(*value);
        if (last)
            break;
        text.remove_prefix(colon + 1);
        if (text.empty())
            return -1; // a single colon at the end
    }
    return static_cast<int>(count);
}

bool is_port(std::string_view text) { return text.size() <= 5 && read_number(text, 10, 65535); }

} // namespace

ip_address ip_address::from_bytes(const std::array<std::uint8_t, 16>& bytes) noexcept
{
    ip_address address;
    for (unsigned i = 0; i < 8; ++i) {
        address.high = address.high << 8 | bytes[i];
        address.low = address.low << 8 | bytes[i + 8];
    }
    return address;
}

ip_address ip_address::prefix(unsigned bits) const noexcept
{
    const auto of_128 = is_v4() ? 96 + std::min(bits, 32U) : std::min(bits, 128U);
    return masked(*this, of_128);
}

std::optional<ip_address> parse_ipv4(std::string_view text) noexcept
{
    std::uint32_t address = 0;
    for (unsigned part = 0; part < 4; ++part) {
        const auto end = part < 3 ? text.find('.') : text.size();
        if (end == std::string_view::npos)
            return std::nullopt;
        const auto value = end <= 3 ? read_number(text.substr(0, end), 10, 255) : std::nullopt;
        // "010" is eight to some readers and ten to others.
        if (!value || (end > 1 && text[0] == '0'))
            return std::nullopt;
        address = address << 8 | *value;
        text.remove_prefix(part < 3 ? end + 1 : end);
    }
    return ip_address::v4(address);
}

std::optional<ip_address> parse_ipv6(std::string_view text) noexcept
{
    if (const auto zone = text.find('%'); zone != std::string_view::npos) {
        if (zone + 1 == text.size())
            return std::nullopt;
        text = text.substr(0, zone);
    }
    std::array<std::uint16_t, 8> front{}, back{};
    ip_address address;
    const auto gap = text.find("::");
    if (gap == std::string_view::npos) {
        if (read_groups(text, front) != 8)
            return std::nullopt;
        for (unsigned i = 0; i < 8; ++i)
            set_group(address, i, front[i]);
        return address;
    }
    const auto before = text.substr(0, gap);
    const int left = before.find('.') == std::string_view::npos ? read_groups(before, front) : -1;
    const int right = read_groups(text.substr(gap + 2), back);
    if (left < 0 || right < 0 || left + right > 7)
        return std::nullopt;
    for (unsigned i = 0; i < static_cast<unsigned>(left); ++i)
        set_group(address, i, front[i]);
    for (unsigned i = 0; i < static_cast<unsigned>(right); ++i)
        set_group(address, 8 - static_cast<unsigned>(right) + i, back[i]);
    return address;
}

std::optional<ip_address> parse_address(std::string_view text) noexcept
{
    if (text.find('%') != std::string_view::npos)
        return std::nullopt;
    return text.find(':') == std::string_view::npos ? parse_ipv4(text) : parse_ipv6(text);
}

std::optional<ip_address> parse_hop(std::string_view text) noexcept
{
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string_view::npos)
            return std::nullopt;
        const auto rest = text.substr(end + 1);
        if (!rest.empty() && (rest[0] != ':' || !is_port(rest.substr(1))))
            return std::nullopt;
        return parse_ipv6(text.substr(1, end - 1));
    }
    const auto colon = text.find(':');
    if (colon == std::string_view::npos)
        return parse_ipv4(text);
    if (text.find(':', colon + 1) != std::string_view::npos)
        return parse_ipv6(text);
    return is_port(text.substr(colon + 1)) ? parse_ipv4(text.substr(0, colon)) : std::nullopt;
}

std::string_view format_address(const ip_address& address, address_text& buffer) noexcept
{
    char* at = buffer.data();
    if (address.is_v4()) {
        for (unsigned shift = 32; shift != 0; shift -= 8) {
            if (shift != 32)
                *at++ = '.';
            at = std::to_chars(at, buffer.data() + buffer.size(), (address.low >> (shift - 8)) & 0xff).ptr;
        }
        return {buffer.data(), static_cast<std::size_t>(at - buffer.data())};
    }
    // The longest run of at least two zero groups becomes "::"; the first of equals.
    unsigned gap = 8, gap_size = 1;
    for (unsigned i = 0; i < 8; ++i) {
        unsigned size = 0;
        while (i + size < 8 && group(address, i + size) == 0)
            ++size;
        if (size > gap_size) {
            gap = i;
            gap_size = size;
        }
    }
    for (unsigned i = 0; i < 8;) {
        if (i == gap) {
            *at++ = ':';
            *at++ = ':';
            i += gap_size;
            continue;
        }
        if (i != 0 && i != gap + gap_size)
            *at++ = ':';
        at = std::to_chars(at, buffer.data() + buffer.size(), group(address, i), 16).ptr;
        ++i;
    }
    return {buffer.data(), static_cast<std::size_t>(at - buffer.data())};
}

bool ip_range::contains(const ip_address& address) const noexcept { return masked(address, bits) == first; }

parsed_ip_range parse_ip_range(std::string_view text) noexcept
{
    const auto slash = text.find('/');
    const auto written = text.substr(0, slash);
    const auto address = parse_address(written);
    if (!address)
        return {{}, "it must be a network such as 10.0.0.0/8 or 2001:db8::/32"};
    // An IPv4 network may be written either way: ::ffff:10.0.0.0/104 is 10.0.0.0/8.
    const bool dotted = written.find(':') == std::string_view::npos;
    ip_range range{*address};
    if (slash != std::string_view::npos) {
        const auto bits = read_number(text.substr(slash + 1), 10, dotted ? 32 : 128);
        if (!bits)
            return {{}, dotted ? "the prefix after `/` must be 0 to 32" : "the prefix after `/` must be 0 to 128"};
        range.bits = *bits + (dotted ? 96 : 0);
    }
    if (!range.contains(*address))
        return {{}, "it has bits set beyond its prefix; write the first address of the network"};
    return {range, {}};
}

bool address_set::add(std::string_view text)
{
    const auto parsed = parse_ip_range(text);
    if (parsed.complaint.empty())
        add(parsed.range);
    return parsed.complaint.empty();
}

bool address_set::contains(const ip_address& address) const noexcept
{
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const ip_range& range) { return range.contains(address); });
}

} // namespace headgate::config
