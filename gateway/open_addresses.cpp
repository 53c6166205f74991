#include "gateway/open_addresses.hpp"

#include "config/ip_address.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace headgate {

namespace {

bool is_among(const std::vector<open_address>& all, const open_address& wanted)
{
    return std::any_of(all.begin(), all.end(), [&](const open_address& each) { return each.caps == wanted.caps; });
}

} // namespace

listening_plan open_addresses::plan(const std::vector<config::listener_config>& wanted, std::size_t workers,
                                    std::vector<config::host_port> beside) const
{
    listening_plan made;
    made.of_worker.resize(workers);
    for (const auto& each : open_)
        beside.push_back(each.actual);
    auto unused = open_;
    for (const auto& each : wanted) {
        listening_sockets opened{each.address, {}};
        const auto known = std::find_if(unused.begin(), unused.end(), [&](const open_address& address) {
            return same_address(address.configured, each.address) || same_address(address.actual, each.address);
        });
        if (known != unused.end()) {
            made.addresses.push_back(*known);
            unused.erase(known);
        } else {
            opened = listen_on(each.address, workers, beside);
            beside.push_back(opened.address);
            made.addresses.push_back(
                {each.address, opened.address,
                 std::make_shared<connection_caps>(each.max_connections, each.max_connections_per_address)});
        }
        for (std::size_t i = 0; i < workers; ++i) {
            auto& of_worker = made.of_worker[i].emplace_back();
            of_worker.config = each;
            of_worker.caps = made.addresses.back().caps;
            if (!opened.sockets.empty())
                of_worker.socket = std::move(opened.sockets[i]);
        }
    }
    return made;
}

void open_addresses::adopt(listening_plan& plan)
{
    for (const auto& each : plan.addresses) {
        if (!is_among(open_, each))
            spdlog::info("listening on {}", each.actual.text());
    }
    for (const auto& each : open_) {
        if (!is_among(plan.addresses, each))
            spdlog::info("no longer listening on {}", each.actual.text());
    }
    for (std::size_t i = 0; i < plan.addresses.size(); ++i) {
        const auto& config = plan.of_worker.front()[i].config;
        plan.addresses[i].caps->use(config.max_connections, config.max_connections_per_address);
    }
    open_ = std::move(plan.addresses);
}

std::vector<config::host_port> open_addresses::actual() const
{
    std::vector<config::host_port> all;
    for (const auto& each : open_)
        all.push_back(each.actual);
    return all;
}

bool same_address(const config::host_port& a, const config::host_port& b)
{
    return a.port == b.port && (a.host == b.host || (config::parse_address(a.host) &&
                                                     config::parse_address(a.host) == config::parse_address(b.host)));
}

} // namespace headgate
