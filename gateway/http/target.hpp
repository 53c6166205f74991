// The request target: its form (B25, B28), and the canonical spelling of its path for routing, keys and the upstream
// (K4, K5). Pure. Results are views of the head unless something had to be rewritten.
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
    bool https = false;         // the scheme of an absolute target is https
    std::string_view authority; // of an absolute target
    std::string_view path;      // begins with "/", not normalised yet; "*" in asterisk form
    std::string_view query;     // with its "?", unchanged; empty when there is none
};

// Parses a target. Returns `bad_target` for other forms, CTL, space, DEL, a fragment, a backslash in the path,
// malformed escapes, %00, bytes above 0x7f, and an authority that is not host[:port].
http_error parse_target(method_id method, std::string_view target, request_target& out);

// Finds the server that the request is for: the authority of an absolute target, which must agree with Host (B28), or
// else Host.
http_error effective_host(const request_target& target, std::string_view host_field, std::string_view& out);

struct path_rules
{
    bool merge_slashes = true;
};

// Returns the canonical spelling of a path: unreserved bytes decoded, other escapes in upper case, bytes that are not
// allowed in a path encoded, dot segments resolved (after %2E is decoded; never above the root), repeated slashes
// merged. %2F and %5C stay escapes: they are data, not separators. Idempotent. Returns `path` itself when nothing
// changes, else a view of `scratch`, whose content it replaces. REQUIRES: parse_target has accepted the path.
std::string_view normalise_path(std::string_view path, const path_rules& rules, byte_buffer& scratch);

} // namespace headgate::http
