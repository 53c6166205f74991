#include "gateway/http/client_address.hpp"

#include "gateway/http/text.hpp"

namespace headgate::http {

namespace {

// Removes the part after the last `separator` outside quotes from `list` and returns it. Quotes are counted from the
// left, so that a quoted comma separates no hops.
std::string_view take_last(std::string_view& list, char separator)
{
    std::size_t cut = std::string_view::npos;
    bool quoted = false;
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (quoted && list[i] == '\\')
            ++i;
        else if (list[i] == '"')
            quoted = !quoted;
        else if (!quoted && list[i] == separator)
            cut = i;
    }
    const auto last = cut == std::string_view::npos ? list : list.substr(cut + 1);
    list = cut == std::string_view::npos ? std::string_view{} : list.substr(0, cut);
    return trim(last);
}

// Returns the "for" of one element of Forwarded; empty when it is missing or malformed.
std::string_view forwarded_for(std::string_view element)
{
    while (!element.empty()) {
        auto pair = take_last(element, ';');
        const auto equals = pair.find('=');
        if (equals == std::string_view::npos || !equals_ignoring_case(trim(pair.substr(0, equals)), "for"))
            continue;
        auto value = trim(pair.substr(equals + 1));
        if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
            value = value.substr(1, value.size() - 2);
        return value;
    }
    return {};
}

// Walks one line from the right. Returns false when the walk is over: at an untrusted or malformed hop.
bool walk(std::string_view line, const client_address_rules& rules, ip_address& client)
{
    const bool rfc7239 = rules.source == hop_source::forwarded;
    while (!line.empty()) {
        std::string_view hop;
        if (rfc7239) {
            hop = take_last(line, ',');
            if (!hop.empty() && (hop = forwarded_for(hop)).empty())
                return false;
        } else {
            const auto comma = line.rfind(',');
            hop = trim(comma == std::string_view::npos ? line : line.substr(comma + 1));
            line = comma == std::string_view::npos ? std::string_view{} : line.substr(0, comma);
        }
        if (hop.empty())
            continue; // an empty list item is not a hop
        const auto address = parse_hop(hop);
        if (!address)
            return false;
        client = *address;
        if (!rules.trusted_proxies.contains(client))
            return false;
    }
    return true;
}

} // namespace

client_address find_client_address(const ip_address& peer, const field_list& fields, const client_address_rules& rules)
{
    client_address result{peer, rules.trusted_proxies.contains(peer)};
    const auto id = rules.source == hop_source::forwarded ? field_id::forwarded : field_id::x_forwarded_for;
    if (!result.peer_trusted || !fields.has(id))
        return result;
    // Several lines are one list; the last line is the nearest.
    for (auto line = fields.lines.rbegin(); line != fields.lines.rend(); ++line)
        if (line->id == id && !walk(line->value, rules, result.address))
            break;
    return result;
}

} // namespace headgate::http
