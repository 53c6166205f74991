#include "limiter/redis/client/slots.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace headgate::limiter::redis {

namespace {

// CRC-16/XMODEM: polynomial 0x1021, from 0.
constexpr std::array<std::uint16_t, 256> make_crc_table()
{
    std::array<std::uint16_t, 256> table{};
    for (unsigned i = 0; i < 256; ++i) {
        unsigned crc = i << 8;
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc & 0x8000u) != 0 ? (crc << 1) ^ 0x1021u : crc << 1;
        table[i] = static_cast<std::uint16_t>(crc & 0xffffu);
    }
    return table;
}
constexpr auto crc_table = make_crc_table();

std::string_view hashed_part(std::string_view key)
{
    const auto open = key.find('{');
    if (open == key.npos)
        return key;
    const auto close = key.find('}', open + 1);
    return close == key.npos || close == open + 1 ? key : key.substr(open + 1, close - open - 1);
}

std::string_view next_word(std::string_view& text)
{
    const auto end = std::min(text.find_first_of(" \r\n"), text.size());
    const auto word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
}

bool is_slot(const reply& from)
{
    return from.is(reply::kind::integer) && from.number() >= 0 && std::cmp_less(from.number(), slot_count);
}

} // namespace

std::uint16_t slot_of(std::string_view key)
{
    unsigned crc = 0;
    for (const char c : hashed_part(key))
        crc = ((crc << 8) ^ crc_table[((crc >> 8) ^ static_cast<unsigned char>(c)) & 0xffu]) & 0xffffu;
    return static_cast<std::uint16_t>(crc % slot_count);
}

std::optional<redirection> parse_redirection(std::string_view error, std::string_view answering_host)
{
    if (error.starts_with('-'))
        error.remove_prefix(1);
    redirection out;
    const auto what = next_word(error);
    if (what == "ASK")
        out.what = redirection::kind::ask;
    else if (what != "MOVED")
        return std::nullopt;
    const auto slot = next_word(error);
    const auto* const end = slot.data() + slot.size();
    const auto [at, wrong] = std::from_chars(slot.data(), end, out.slot);
    if (wrong != std::errc{} || at != end || out.slot >= slot_count)
        return std::nullopt;
    const auto to = next_word(error);
    const auto colon = to.rfind(':'); // the last one: an IPv6 address contains colons
    if (colon == to.npos || to.starts_with("?:"))
        return std::nullopt;
    const auto address = read_address(colon == 0 ? answering_host : to.substr(0, colon), to.substr(colon + 1));
    if (!address)
        return std::nullopt;
    out.to = *address;
    return out;
}

std::optional<slot_map> slot_map::read(const reply& from, std::string_view answering_host)
{
    if (!from.is(reply::kind::array))
        return std::nullopt;
    std::optional<slot_map> out(std::in_place);
    bool is_sound = true;
    from.for_each([&](const reply& range) { is_sound = is_sound && out->read_range(range, answering_host); });
    if (!is_sound)
        out.reset();
    return out;
}

// Reads one range: first, last, [host, port, ...] of the master, the same of each replica.
bool slot_map::read_range(const reply& range, std::string_view answering_host)
{
    if (range.size() < 3 || !is_slot(range[0]) || !is_slot(range[1]) || range[0].number() > range[1].number())
        return false;
    const auto master = range[2];
    if (master.size() < 2 || !master[1].is(reply::kind::integer))
        return false;
    const auto named = master[0];
    if (!named.is(reply::kind::text) && !named.is(reply::kind::nil))
        return false;
    if (named.text() == "?")
        return true; // its host is not known yet
    const auto node =
        read_address(named.text().empty() ? answering_host : named.text(), std::to_string(master[1].number()));
    if (!node)
        return false;
    const auto from = by_slot_.begin() + range[0].number(), to = by_slot_.begin() + range[1].number() + 1;
    std::fill(from, to, index_of(*node));
    return true;
}

slot_map::index slot_map::index_of(const server_address& node)
{
    const auto known = std::find(masters_.begin(), masters_.end(), node);
    if (known != masters_.end())
        return static_cast<index>(known - masters_.begin() + 1);
    if (masters_.size() == slot_count)
        return 0; // more than the index can count
    masters_.push_back(node);
    return static_cast<index>(masters_.size());
}

const server_address* slot_map::master_of(std::uint16_t slot) const
{
    const auto i = slot < slot_count ? by_slot_[slot] : index{0};
    return i == 0 ? nullptr : &masters_[i - 1u];
}

std::optional<std::size_t> slot_map::master_number(std::uint16_t slot) const
{
    const auto i = slot < slot_count ? by_slot_[slot] : index{0};
    return i == 0 ? std::nullopt : std::optional<std::size_t>(i - 1u);
}

void slot_map::apply(const redirection& redirected)
{
    if (redirected.what == redirection::kind::moved && redirected.slot < slot_count)
        by_slot_[redirected.slot] = index_of(redirected.to);
}

std::size_t slot_map::covered() const
{
    return slot_count - static_cast<std::size_t>(std::count(by_slot_.begin(), by_slot_.end(), index{0}));
}

} // namespace headgate::limiter::redis
