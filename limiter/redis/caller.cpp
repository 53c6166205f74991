#include "limiter/redis/caller.hpp"

namespace headgate::limiter::redis {

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
    last_error_ = classify(got.value().text());
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
