// The request target: which form it has (B25, B28), and the one canonical spelling of its path that routing, keys and
// the upstream all see (K4, K5). Pure; views of the head unless something had to be rewritten.
#pragma once

#include "gateway/http/buffer.hpp"
#include "gateway/http/errors.hpp"
#include "gateway/http/methods.hpp"

#include <cstdint>
#include <string_view>

namespace headgate::http {

enum class target_form : std::uint8_t
{
    origin,   // /path?query
    absolute, // http://authority/path?query
    asterisk  // *, for OPTIONS only
};

struct request_target
{
    target_form form = target_form::origin;
    bool https = false;         // of an absolute target's scheme
    std::string_view authority; // of an absolute target
    std::string_view path;      // begins with "/", not yet normalised; "*" in asterisk form
    std::string_view query;     // with its "?", untouched; empty when there is none
};

// Everything wrong with a target is `bad_target`: other forms, CTL, space, DEL, fragment, backslash in the path, broken
// escapes, %00, bytes above 0x7f, an authority that is not host[:port].
http_error parse_target(method_id method, std::string_view target, request_target& out);

// The server the request is for: the authority of an absolute target, which must agree with Host (B28), or else Host.
http_error effective_host(const request_target& target, std::string_view host_field, std::string_view& out);

struct path_rules
{
    bool merge_slashes = true;
};

// The canonical spelling of a path that parse_target let through: unreserved bytes decoded, other escapes in upper
// case, bytes that do not belong in a path encoded, dot segments resolved (after %2E is decoded; never above the root),
// runs of slashes merged. %2F and %5C stay escapes: they are data, not separators. Applying it twice changes nothing.
// Returns `path` itself when there is nothing to change, else a view of `scratch`, whose content it replaces.
std::string_view normalise_path(std::string_view path, const path_rules& rules, byte_buffer& scratch);

} // namespace headgate::http
