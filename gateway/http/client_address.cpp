#include "gateway/http/client_address.hpp"

#include "gateway/http/text.hpp"

#include <optional>

namespace headgate::http {

namespace {

// One line of Forwarded, read once from the left, because quotes are only known from there: a quoted comma separates no
// hops. Keeps the hop at which a walk from the right would end.
class forwarded_line
{
public:
    explicit forwarded_line(const client_address_rules& rules) : rules_(rules) {}

    void read(std::string_view line)
    {
        bool is_quoted = false;
        std::size_t pair_begin = 0;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const char c = line[i];
            if (is_quoted && c == '\\') {
                ++i;
            } else if (c == '"') {
                is_quoted = !is_quoted;
            } else if (!is_quoted && (c == ',' || c == ';')) {
                end_pair(trim(line.substr(pair_begin, i - pair_begin)));
                pair_begin = i + 1;
                is_empty_ = is_empty_ && c == ',';
                if (c == ',')
                    end_hop();
            }
        }
        if (is_quoted)
            return refuse();
        end_pair(trim(line.substr(pair_begin)));
        end_hop();
    }

    const std::optional<ip_address>& last_good() const { return last_good_; }
    bool is_over() const { return is_over_; } // the walk does not go on to the line before

private:
    void end_pair(std::string_view pair)
    {
        if (pair.empty())
            return;
        is_empty_ = false;
        const auto equals = pair.find('=');
        if (equals == std::string_view::npos || !equals_ignoring_case(trim(pair.substr(0, equals)), "for"))
            return;
        for_ = trim(pair.substr(equals + 1));
        if (for_.size() >= 2 && for_.front() == '"' && for_.back() == '"')
            for_ = for_.substr(1, for_.size() - 2);
    }

    // A quote that is not closed may come from a client, and hides what a proxy has appended: no hop of the line
    // counts.
    void refuse()
    {
        last_good_.reset();
        is_over_ = true;
    }

    void end_hop()
    {
        const auto address = for_.empty() ? std::nullopt : parse_hop(for_);
        const bool is_a_hop = !is_empty_; // an empty list item is none
        for_ = {};
        is_empty_ = true;
        if (!is_a_hop)
            return;
        if (address && rules_.trusted_proxies.contains(*address)) {
            if (!last_good_)
                last_good_ = address; // so far the farthest one that the walk would reach
            return;
        }
        last_good_ = address; // the walk ends here, or behind a hop without an address
        is_over_ = true;
    }

    const client_address_rules& rules_;
    std::string_view for_; // of the hop that is being read
    bool is_empty_ = true; // that hop
    std::optional<ip_address> last_good_;
    bool is_over_ = false;
};

// Each walks one line from the right. Returns false when the walk is over: at an untrusted or malformed hop.
bool walk_forwarded(std::string_view value, const client_address_rules& rules, ip_address& client)
{
    forwarded_line line(rules);
    line.read(value);
    client = line.last_good().value_or(client);
    return !line.is_over();
}

bool walk_x_forwarded_for(std::string_view line, const client_address_rules& rules, ip_address& client)
{
    while (!line.empty()) {
        const auto comma = line.rfind(',');
        const auto hop = trim(comma == std::string_view::npos ? line : line.substr(comma + 1));
        line = comma == std::string_view::npos ? std::string_view{} : line.substr(0, comma);
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
    const bool is_rfc7239 = rules.source == hop_source::forwarded;
    const auto id = is_rfc7239 ? field_id::forwarded : field_id::x_forwarded_for;
    if (!result.peer_trusted || !fields.has(id))
        return result;
    const auto walk = is_rfc7239 ? walk_forwarded : walk_x_forwarded_for;
    // Several lines are one list; the last line is the nearest.
    for (auto line = fields.lines.rbegin(); line != fields.lines.rend(); ++line)
        if (line->id == id && !walk(line->value, rules, result.address))
            break;
    return result;
}

} // namespace headgate::http
