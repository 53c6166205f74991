#include "tests/redis_client/sentinel_group.hpp"

#include <hiredis/hiredis.h>

#include <stdexcept>
#include <thread>

namespace headgate::testing {

namespace {

using namespace std::chrono_literals;

std::string flat(const redisReply& result)
{
    if (result.type == REDIS_REPLY_INTEGER)
        return std::to_string(result.integer);
    if (result.type != REDIS_REPLY_ARRAY)
        return result.str ? std::string(result.str, result.len) : std::string();
    std::string all;
    for (std::size_t i = 0; i < result.elements; ++i)
        all += (i == 0 ? "" : " ") + flat(*result.element[i]);
    return all;
}

std::string ask_over(redisContext* to, const std::vector<std::string>& words)
{
    const std::unique_ptr<redisContext, decltype(&redisFree)> owned(to, redisFree);
    if (!to || to->err != 0)
        return {};
    redisSetTimeout(to, {1, 0});
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const auto& word : words) {
        texts.push_back(word.data());
        sizes.push_back(word.size());
    }
    auto* const result =
        static_cast<redisReply*>(redisCommandArgv(to, static_cast<int>(words.size()), texts.data(), sizes.data()));
    if (!result)
        return {};
    auto text = flat(*result);
    freeReplyObject(result);
    return text;
}

std::size_t count_of(std::string_view what, std::string_view in)
{
    std::size_t n = 0;
    for (auto at = in.find(what); at != in.npos; at = in.find(what, at + 1))
        ++n;
    return n;
}

} // namespace

std::string ask_server(const redis_server& server, const std::vector<std::string>& words)
{
    return ask_over(redisConnectUnixWithTimeout(server.socket_path().c_str(), {1, 0}), words);
}

std::string ask_port(int port, const std::vector<std::string>& words)
{
    return ask_over(redisConnectWithTimeout("127.0.0.1", port, {1, 0}), words);
}

sentinel_group::sentinel_group(std::size_t with_replicas, redis_server::when sentinels_start)
{
    const auto port = std::to_string(primary.port());
    ask_server(primary, {"CONFIG", "SET", "repl-diskless-sync-delay", "0"});
    for (std::size_t i = 0; i < with_replicas; ++i)
        replicas.push_back(std::make_unique<redis_server>(std::vector<std::string>{"--replicaof", "127.0.0.1", port}));
    ask_server(primary, {"SET", "followed", "1"});
    for (const auto& each : replicas)
        wait_for("the replicas do not follow the primary", [&] {
            return ask_server(*each, {"GET", "followed"}) == "1";
        });
    const std::string name = master_name;
    const redis_server::as_sentinel with{"sentinel monitor " + name + " 127.0.0.1 " + port + " 2\n" +
                                         "sentinel down-after-milliseconds " + name + " 500\n" +
                                         "sentinel failover-timeout " + name + " 2000\n"};
    for (int i = 0; i < 3; ++i)
        sentinels.push_back(std::make_unique<redis_server>(with, redis_server::when::later));
    if (sentinels_start == redis_server::when::now)
        start_sentinels();
}

void sentinel_group::start_sentinels()
{
    for (const auto& each : sentinels) {
        each->start();
        // They discover each other, and detect the state of a server, faster than by default.
        ask_server(*each, {"SENTINEL", "DEBUG", "PUBLISH-PERIOD", "200", "INFO-PERIOD", "500"});
    }
    for (const auto& each : sentinels) {
        wait_for("the sentinels do not know each other and the replicas", [&] {
            const auto master = ask_server(*each, {"SENTINEL", "MASTER", master_name});
            const auto followers = ask_server(*each, {"SENTINEL", "REPLICAS", master_name});
            return master.find("num-other-sentinels 2") != master.npos &&
                   count_of("master-link-status ok", followers) == replicas.size();
        });
    }
}

std::shared_ptr<redis::sentinel_master> sentinel_group::source(client_loop& in, std::chrono::microseconds timeout,
                                                               std::chrono::milliseconds check_interval) const
{
    redis::sentinel_options options;
    options.master = master_name;
    options.sentinel.timeout = 500ms;
    options.server.timeout = timeout;
    options.check_interval = check_interval;
    for (const auto& each : sentinels)
        options.sentinels.push_back({"127.0.0.1", static_cast<std::uint16_t>(each->port())});
    return std::make_shared<redis::sentinel_master>(in.events, in.names, std::move(options), in.keep_told());
}

int sentinel_group::promoted() const
{
    for (const auto& each : replicas) {
        if (ask_server(*each, {"ROLE"}).starts_with("master"))
            return each->port();
    }
    return 0;
}

int sentinel_group::named_by_all() const
{
    std::string all;
    for (const auto& each : sentinels) {
        const auto result = ask_server(*each, {"SENTINEL", "get-master-addr-by-name", master_name});
        if (result.empty() || (!all.empty() && result != all))
            return 0;
        all = result;
    }
    return std::stoi(all.substr(all.find(' ') + 1));
}

void sentinel_group::wait_for(const char* what, const std::function<bool()>& is_so) const
{
    const auto end = std::chrono::steady_clock::now() + 15s;
    while (!is_so()) {
        if (std::chrono::steady_clock::now() > end)
            throw std::runtime_error(what);
        std::this_thread::sleep_for(10ms);
    }
}

} // namespace headgate::testing
