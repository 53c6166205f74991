#include "gateway/http/upgrade.hpp"

#include "gateway/http/text.hpp"

#include <boost/uuid/detail/sha1.hpp>

namespace headgate::http {

namespace {

constexpr std::string_view base64_alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Returns the value of the only line with this id; empty when there is none or several.
std::string_view only_value(const field_list& fields, field_id id)
{
    std::string_view value;
    unsigned count = 0;
    if (!fields.has(id))
        return value;
    for (const auto& line : fields.lines)
        if (line.id == id) {
            value = line.value;
            ++count;
        }
    return count == 1 ? value : std::string_view{};
}

// Returns whether the key is 16 bytes in base64: 22 digits, the last one with four bits, and two pads.
bool is_key(std::string_view key)
{
    if (key.size() != 24 || !key.ends_with("=="))
        return false;
    for (const char c : key.substr(0, 22))
        if (base64_alphabet.find(c) == std::string_view::npos)
            return false;
    return base64_alphabet.find(key[21]) % 16 == 0;
}

} // namespace

http_error read_upgrade(const request_head& head, const request_framing& framing, upgrade_kind& out)
{
    out = upgrade_kind::none;
    if (!head.fields.has(field_id::upgrade) || !framing.connection.upgrade || head.minor_version != 1 ||
        head.method_number != method_id::get ||
        !equals_ignoring_case(only_value(head.fields, field_id::upgrade), "websocket"))
        return http_error::none;
    if (only_value(head.fields, field_id::sec_websocket_version) != "13")
        return http_error::upgrade_version;
    if (framing.body.kind != body_kind::none && framing.body != body_framing{body_kind::length, 0})
        return http_error::bad_upgrade;
    if (!is_key(only_value(head.fields, field_id::sec_websocket_key)))
        return http_error::bad_upgrade;
    out = upgrade_kind::websocket;
    return http_error::none;
}

std::array<char, 28> websocket_accept(std::string_view key)
{
    constexpr std::string_view salt = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    boost::uuids::detail::sha1 hash;
    hash.process_bytes(key.data(), key.size());
    hash.process_bytes(salt.data(), salt.size());
    boost::uuids::detail::sha1::digest_type words;
    hash.get_digest(words);

    std::array<unsigned, 21> bytes{}; // 20 and a zero to pad the last group
    for (std::size_t i = 0; i < 20; ++i)
        bytes[i] = (words[i / 4] >> (24 - 8 * (i % 4))) & 0xffU;
    std::array<char, 28> text{};
    for (std::size_t group = 0; group < 7; ++group) {
        const auto bits = bytes[group * 3] << 16 | bytes[group * 3 + 1] << 8 | bytes[group * 3 + 2];
        for (std::size_t digit = 0; digit < 4; ++digit)
            text[group * 4 + digit] = base64_alphabet[(bits >> (18 - 6 * digit)) & 63U];
    }
    text[27] = '=';
    return text;
}

bool accepts_websocket(const response_head& head, const connection_options& connection, std::string_view key)
{
    const auto expected = websocket_accept(key);
    return head.status == 101 && connection.upgrade &&
           equals_ignoring_case(only_value(head.fields, field_id::upgrade), "websocket") &&
           only_value(head.fields, field_id::sec_websocket_accept) ==
               std::string_view(expected.data(), expected.size());
}

} // namespace headgate::http
