#include "limiter/redis/client/error_class.hpp"

#include <utility>

namespace headgate::limiter::redis {

namespace {

constexpr std::pair<std::string_view, error_class> by_word[] = {
    {"NOSCRIPT", error_class::no_script},
    {"READONLY", error_class::read_only},
    {"OOM", error_class::out_of_memory},
    {"LOADING", error_class::loading},
    {"BUSY", error_class::busy},
    {"MASTERDOWN", error_class::master_down},
    {"CLUSTERDOWN", error_class::cluster_down},
    {"MOVED", error_class::moved},
    {"ASK", error_class::ask},
    {"TRYAGAIN", error_class::try_again},
    {"CROSSSLOT", error_class::cross_slot},
    {"NOREPLICAS", error_class::no_replicas},
    {"MISCONF", error_class::misconfigured},
    {"NOAUTH", error_class::unauthorized},
    {"WRONGPASS", error_class::unauthorized},
    {"NOPERM", error_class::unauthorized},
    {"WRONGTYPE", error_class::wrong_type},
    {"ERR", error_class::general},
};

} // namespace

error_class classify(std::string_view message)
{
    if (message.starts_with('-'))
        message.remove_prefix(1);
    const auto word = message.substr(0, message.find_first_of(" \r\n"));
    for (const auto& [known, meaning] : by_word) {
        if (word == known)
            return meaning;
    }
    return error_class::other;
}

std::string_view name_of(error_class c)
{
    if (c == error_class::unauthorized)
        return "unauthorized";
    for (const auto& [known, meaning] : by_word) {
        if (meaning == c)
            return known;
    }
    return "other";
}

} // namespace headgate::limiter::redis
