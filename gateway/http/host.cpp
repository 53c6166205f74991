#include "gateway/http/host.hpp"

#include "gateway/http/ip_address.hpp"
#include "gateway/http/text.hpp"

#include <algorithm>

namespace headgate::http {

namespace {

constexpr std::size_t longest_name = 255;

// Returns how many bytes at the beginning are a name, or zero.
std::size_t name_size(std::string_view text)
{
    std::size_t size = 0;
    char before = '.'; // a single dot, or two in a row, is not a name
    for (; size < text.size() && is_class(text[size], detail::unreserved_byte); before = text[size++]) {
        if (text[size] == '.' && before == '.')
            return 0;
    }
    return size <= longest_name ? size : 0;
}

std::optional<ip_address> bracketed_ipv6(std::string_view text)
{
    if (text.size() <= 2 || text.front() != '[' || text.back() != ']' || text.find('%') != std::string_view::npos)
        return std::nullopt;
    return parse_ipv6(text.substr(1, text.size() - 2));
}

std::string_view without_root_dot(std::string_view host)
{
    return host.size() > 1 && host.back() == '.' ? host.substr(0, host.size() - 1) : host;
}

} // namespace

std::optional<host_port> parse_host(std::string_view text) noexcept
{
    const auto cut = text.starts_with('[') ? text.find(']') + 1 : name_size(text); // 0: there is none
    host_port result{text.substr(0, cut), {}};
    if (cut == 0 || (text.starts_with('[') && !bracketed_ipv6(result.host)))
        return std::nullopt;
    if (cut == text.size())
        return result;
    std::uint64_t port = 0;
    const auto digits = text.substr(cut + 1);
    if (text[cut] != ':' || digits.size() > 5 || !parse_decimal(digits, port) || port > 65535)
        return std::nullopt;
    result.port = static_cast<std::uint16_t>(port);
    return result;
}

bool same_authority(std::string_view a, std::string_view b, std::uint16_t default_port) noexcept
{
    const auto left = parse_host(a), right = parse_host(b);
    host_text of_left, of_right;
    return left && right && left->port.value_or(default_port) == right->port.value_or(default_port) &&
           equals_ignoring_case(routing_host(left->host, of_left), routing_host(right->host, of_right));
}

std::string_view routing_host(std::string_view host_and_port, host_text& buffer) noexcept
{
    if (!host_and_port.starts_with('['))
        return without_root_dot(host_and_port.substr(0, host_and_port.find(':')));
    const auto bracketed = host_and_port.substr(0, host_and_port.find(']') + 1);
    const auto address = bracketed_ipv6(bracketed);
    if (!address)
        return bracketed;
    address_text room;
    const auto text = format_address(*address, room);
    auto* end = std::copy(text.begin(), text.end(), buffer.begin() + 1);
    buffer.front() = '[';
    *end++ = ']';
    return {buffer.data(), end};
}

} // namespace headgate::http
