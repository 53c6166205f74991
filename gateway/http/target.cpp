#include "gateway/http/target.hpp"

#include "gateway/http/host.hpp"
#include "gateway/http/text.hpp"

#include <algorithm>
#include <cstring>

namespace headgate::http {

namespace {

// Returns the byte of the escape at text[at] ('%'), or -1.
int escaped_byte(std::string_view text, std::size_t at)
{
    if (text.size() - at < 3)
        return -1;
    const int high = hex_value(text[at + 1]), low = hex_value(text[at + 2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// Returns whether all bytes are of the allowed class, and all escapes are complete and not NUL.
bool is_clean(std::string_view text, unsigned allowed)
{
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (is_class(text[i], allowed))
            continue;
        if (text[i] != '%' || escaped_byte(text, i) <= 0)
            return false;
        i += 2;
    }
    return true;
}

// Returns whether a "." or ".." segment begins at `at`.
bool is_dot_segment(std::string_view path, std::size_t at)
{
    if (at >= path.size() || path[at] != '.')
        return false;
    ++at;
    if (at < path.size() && path[at] == '.')
        ++at;
    return at == path.size() || path[at] == '/';
}

bool is_canonical(std::string_view path, const path_rules& rules)
{
    for (std::size_t i = 0; i < path.size(); ++i) {
        if (!is_class(path[i], detail::path_byte))
            return false;
        if (path[i] == '/' &&
            (is_dot_segment(path, i + 1) || (rules.merge_slashes && i + 1 < path.size() && path[i + 1] == '/')))
            return false;
    }
    return true;
}

// Writes every byte in its canonical spelling; at most three bytes for each byte.
std::size_t rewrite_bytes(std::string_view path, char* out)
{
    constexpr std::string_view digits = "0123456789ABCDEF";
    char* to = out;
    for (std::size_t i = 0; i < path.size(); ++i) {
        const bool escaped = path[i] == '%';
        const char byte = escaped ? static_cast<char>(escaped_byte(path, i)) : path[i];
        if (escaped)
            i += 2;
        if (escaped ? is_class(byte, detail::unreserved_byte) : is_class(byte, detail::path_byte)) {
            *to++ = byte;
            continue;
        }
        *to++ = '%';
        *to++ = digits[static_cast<unsigned char>(byte) >> 4];
        *to++ = digits[static_cast<unsigned char>(byte) & 15];
    }
    return static_cast<std::size_t>(to - out);
}

// Resolves dot segments in place (RFC 3986 §5.2.4): the result is never longer than the input read so far.
std::size_t resolve_segments(char* path, std::size_t size, const path_rules& rules)
{
    std::size_t written = 0;
    for (std::size_t read = 0; read < size;) { // path[read] is a "/"
        const auto begin = read + 1;
        const auto* slash = static_cast<const char*>(std::memchr(path + begin, '/', size - begin));
        const auto end = slash != nullptr ? static_cast<std::size_t>(slash - path) : size;
        const std::string_view segment(path + begin, end - begin);
        const bool last = end == size;
        read = end;
        if (segment == "." || segment == "..") {
            if (segment.size() == 2)
                while (written > 0 && path[--written] != '/') {
                }
            if (last)
                path[written++] = '/';
        } else if (!segment.empty() || last || !rules.merge_slashes) {
            path[written++] = '/';
            std::memmove(path + written, segment.data(), segment.size());
            written += segment.size();
        }
    }
    return written;
}

http_error split_path(std::string_view text, request_target& out)
{
    const auto question = std::min(text.find('?'), text.size());
    out.path = text.substr(0, question);
    out.query = text.substr(question);
    return is_clean(out.path, detail::path_text_byte) && is_clean(out.query, detail::target_byte)
               ? http_error::none
               : http_error::bad_target;
}

bool take_prefix(std::string_view& text, std::string_view prefix)
{
    if (!equals_ignoring_case(text.substr(0, prefix.size()), prefix))
        return false;
    text.remove_prefix(prefix.size());
    return true;
}

} // namespace

http_error parse_target(method_id method, std::string_view target, request_target& out)
{
    out = {};
    if (target.starts_with('/'))
        return split_path(target, out);
    if (target == "*") {
        out.form = target_form::asterisk;
        out.path = target;
        return method == method_id::options ? http_error::none : http_error::bad_target;
    }
    out.form = target_form::absolute;
    if (!take_prefix(target, "http://")) {
        if (!take_prefix(target, "https://"))
            return http_error::bad_target;
        out.https = true;
    }
    const auto end = target.find_first_of("/?#");
    out.authority = target.substr(0, end);
    if (!parse_host(out.authority))
        return http_error::bad_target;
    const auto rest = end == std::string_view::npos ? std::string_view{} : target.substr(end);
    if (const auto error = split_path(rest, out); error != http_error::none)
        return error;
    // RFC 9112 §3.2.4: OPTIONS without path and query is the asterisk form.
    if (out.path.empty())
        out.path = rest.empty() && method == method_id::options ? "*" : "/";
    return http_error::none;
}

http_error effective_host(const request_target& target, std::string_view host_field, std::string_view& out)
{
    out = host_field;
    if (target.form != target_form::absolute)
        return http_error::none;
    out = target.authority;
    const bool agrees = host_field.empty() || same_authority(target.authority, host_field, target.https ? 443 : 80);
    return agrees ? http_error::none : http_error::bad_host;
}

std::string_view normalise_path(std::string_view path, const path_rules& rules, byte_buffer& scratch)
{
    if (path == "*" || is_canonical(path, rules))
        return path;
    scratch.clear();
    char* const bytes = scratch.prepare(path.size() * 3);
    scratch.commit(resolve_segments(bytes, rewrite_bytes(path, bytes), rules));
    return scratch.view();
}

} // namespace headgate::http
