// Methods as small numbers. A method is a case-sensitive token (B24): "get" is not GET but an unknown method.
#pragma once

#include <cstdint>
#include <string_view>

namespace headgate::http {

enum class method_id : std::uint8_t
{
    get,
    head,
    post,
    put,
    delete_,
    patch,
    options,
    trace,
    connect,
    other
};

constexpr method_id find_method(std::string_view name) noexcept
{
    using enum method_id;
    switch (name.size()) {
    case 3:
        return name == "GET" ? get : (name == "PUT" ? put : other);
    case 4:
        return name == "POST" ? post : (name == "HEAD" ? head : other);
    case 5:
        return name == "PATCH" ? patch : (name == "TRACE" ? trace : other);
    case 6:
        return name == "DELETE" ? delete_ : other;
    case 7:
        return name == "OPTIONS" ? options : (name == "CONNECT" ? connect : other);
    default:
        return other;
    }
}

constexpr std::string_view method_name(method_id id) noexcept
{
    constexpr std::string_view names[] = {"GET",   "HEAD",    "POST",  "PUT",     "DELETE",
                                          "PATCH", "OPTIONS", "TRACE", "CONNECT", ""};
    return names[static_cast<unsigned>(id)];
}

// RFC 9110 §9.2.2. An unknown method is not idempotent.
constexpr bool is_idempotent(method_id id) noexcept
{
    using enum method_id;
    return id == get || id == head || id == put || id == delete_ || id == options || id == trace;
}

} // namespace headgate::http
