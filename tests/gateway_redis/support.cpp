#include "tests/gateway_redis/support.hpp"

#include <algorithm>

namespace headgate::tests {

std::string configuration(const redis_server& server, const shared_setup& how)
{
    return configuration("redis://" + how.login + "127.0.0.1:" + std::to_string(server.port()) + "/0", how);
}

std::string configuration(const std::string& url, const shared_setup& how)
{
    return "workers: " + std::to_string(how.workers) +
           "\n"
           "listeners: [ { address: 127.0.0.1:0 } ]\n"
           "admin: { address: 127.0.0.1:0 }\n"
           "log: { access: { path: " +
           how.log +
           " } }\n"
           "stores:\n"
           "  local: { type: memory }\n"
           "  shared: { type: redis, url: \"" +
           url + "\", " + how.store_options +
           " }\n"
           "keys: { user: [ { header: X-API-Key } ] }\n" +
           how.more +
           "chains:\n"
           "  guard: { store: local, rules: [ { name: guard, key: user, algorithm: fixed_window, align: first, limit: "
           "1000/hour } ] }\n"
           "  api:\n"
           "    store: shared\n"
           "    rules:\n" +
           how.rules + "upstreams: { " + how.upstream +
           " }\n"
           "routes: [ { name: all, upstream: up, chains: " +
           how.chains + " } ]\n";
}

bool wait_until_connected(running_gateway& gateway)
{
    return eventually([&] {
        const auto result = ask_admin(gateway, "/readyz");
        return status_of(result) == 200 && result.find("\"warnings\":[]") != std::string::npos;
    });
}

tally& tally::operator+=(const tally& more)
{
    passed += more.passed;
    refused += more.refused;
    other += more.other;
    longest = std::max(longest, more.longest);
    return *this;
}

tally ask_for(const running_gateway& gateway, int n, const std::string& key)
{
    tally sum;
    auto client = gateway.connect();
    for (int i = 0; i < n; ++i) {
        const auto began = std::chrono::steady_clock::now();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: " + key + "\r\n\r\n");
        const auto status = status_of(client.read_response());
        sum.longest =
            std::max(sum.longest,
                     std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began));
        ++(status == 200 ? sum.passed : status == 429 ? sum.refused : sum.other);
    }
    return sum;
}

} // namespace headgate::tests
