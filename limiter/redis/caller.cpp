#include "limiter/redis/caller.hpp"

#include <algorithm>

namespace headgate::limiter::redis {

namespace {

// Scripts append " script: ..., on @user_script:..." to an error.
std::string text_for_log(error_class kind, std::string_view error)
{
    constexpr std::size_t most = 200;
    if (kind == error_class::general || kind == error_class::other || kind == error_class::unauthorized)
        return std::string(error.substr(0, std::min(error.find(" script: "), most)));
    return std::string(name_of(kind));
}

} // namespace

std::string_view name_of(trouble t)
{
    constexpr std::string_view names[] = {"none",       "timeout", "unreachable", "broken",
                                          "overloaded", "refused", "malformed",   "confused"};
    return names[static_cast<std::size_t>(t)];
}

trouble caller::trouble_of(const link::answer& got)
{
    switch (got.failed) {
    case failure::timeout:
        return trouble::timeout;
    case failure::unreachable:
        return trouble::unreachable;
    case failure::broken:
        return trouble::broken;
    case failure::overloaded:
        return trouble::overloaded;
    case failure::none:
        break;
    }
    if (!got.value().is_error())
        return trouble::none;
    const auto error = got.value().text();
    last_error_ = classify(error);
    last_error_text_ = text_for_log(last_error_, error);
    switch (last_error_) {
    case error_class::moved:
    case error_class::ask:
        ++seen.redirections;
        break;
    case error_class::try_again:
        ++seen.tried_again;
        break;
    case error_class::cross_slot:
        ++seen.cross_slots;
        [[fallthrough]];
    default:
        ++seen.errors;
    }
    return trouble::refused;
}

} // namespace headgate::limiter::redis
