// One round of the search: queries the sentinels for the master, and the server that they name for its role.
#include "limiter/redis/client/command.hpp"
#include "limiter/redis/client/sentinel.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace headgate::limiter::redis {

namespace {

using std::chrono::steady_clock;
bool is_at(const link& to, const server_address& at)
{
    return to.options().host == at.host && to.options().port == at.port;
}

} // namespace

std::string sentinel_master::address_of(const link& to)
{
    return server_address{to.options().host, to.options().port}.text();
}

std::optional<server_address> parse_switch(std::string_view message, std::string_view master)
{
    std::array<std::string_view, 5> words;
    for (auto& word : words) {
        const auto end = std::min(message.find(' '), message.size());
        word = message.substr(0, end);
        message.remove_prefix(std::min(end + 1, message.size()));
    }
    if (words[0] != master || !message.empty())
        return std::nullopt;
    return read_address(words[3], words[4]);
}

// A master that a sentinel has just announced comes first: the other sentinels may not know of it yet.
task<bool> sentinel_master::seek()
{
    ++seen_.rounds;
    trouble_.clear();
    std::vector<candidate> named;
    if (announced_)
        named.push_back({*std::exchange(announced_, std::nullopt), 0});
    else
        co_await ask_sentinels(named);
    for (const auto& each : named) {
        const bool is_found = co_await try_server(each.at);
        if (is_found)
            become(link::state::ready, "");
        if (is_found || is_stopped())
            co_return is_found;
    }
    if (named.empty()) {
        const auto no_sentinel = trouble_;
        const bool still_answers = co_await is_kept();
        if (still_answers)
            become(link::state::ready, "no sentinel names the primary, the last one still answers: " + no_sentinel);
        if (still_answers || is_stopped())
            co_return still_answers;
        trouble_ = no_sentinel;
    }
    const bool is_early = std::any_of(sentinels_.begin(), sentinels_.end(),
                                      [](const auto& each) { return each.to->now() == link::state::connecting; });
    become(named.empty() && is_early ? link::state::connecting : link::state::waiting, trouble_);
    co_return false;
}

// Returns whether the current server can be kept although no sentinel names one: requests need the server, not the
// sentinels.
task<bool> sentinel_master::is_kept()
{
    bool is = !is_stopped() && current_->now() == link::state::ready;
    if (is)
        is = co_await is_master(current_);
    co_return is && !is_stopped();
}

// Collects the servers that most of the answering sentinels name; several when they are equal. A single sentinel may
// not know of a failover yet, or lead one that another sentinel will win: charges on its server would be lost.
task<void> sentinel_master::ask_sentinels(std::vector<candidate>& out)
{
    std::string silent;
    for (std::size_t i = 0; i < sentinels_.size() && !is_stopped(); ++i) {
        if (sentinels_[i].to->now() == link::state::ready)
            co_await ask_sentinel(i, out);
        else
            silent += (silent.empty() ? "" : "; ") + address_of(*sentinels_[i].to) + ": " + sentinels_[i].why;
    }
    if (out.empty() && trouble_.empty())
        trouble_ = "no sentinel answers: " + silent;
    int most = 0;
    for (const auto& each : out)
        most = std::max(most, each.votes);
    std::erase_if(out, [&](const candidate& each) { return each.votes < most; });
}

task<void> sentinel_master::ask_sentinel(std::size_t which, std::vector<candidate>& out)
{
    const auto to = sentinels_[which].to;
    const auto write = [&](std::string& command) {
        append_command(command, {"SENTINEL", "get-master-addr-by-name", options_.master});
    };
    const auto got = co_await to->ask(to->turn_began(), write);
    const auto name = "sentinel " + address_of(*to);
    if (got.failed != failure::none) {
        trouble_ = name + ": " + std::string(name_of(got.failed));
        co_return;
    }
    const auto value = got.value();
    const auto at = value.size() == 2 ? read_address(value[0].text(), value[1].text()) : std::nullopt;
    if (!at) {
        trouble_ = name + (value.is_error() ? ": " + std::string(value.text())
                                            : " knows no master of the name " + options_.master);
        co_return;
    }
    const auto known = std::find_if(out.begin(), out.end(), [&](const candidate& c) { return c.at == *at; });
    if (known == out.end())
        out.push_back({*at, 1});
    else
        ++known->votes;
}

// ---- a server

task<bool> sentinel_master::try_server(server_address at)
{
    bool is_good = false;
    if (is_at(*current_, at) && current_->now() == link::state::ready)
        is_good = co_await is_master(current_);
    else
        is_good = co_await try_new_link(at);
    co_return is_good;
}

task<bool> sentinel_master::try_new_link(server_address at)
{
    const auto number = ++links_made_;
    const auto on_change = [number, weak = weak_from_this()](link::state now, std::string_view why) {
        if (const auto self = weak.lock())
            self->on_server(number, now, why);
    };
    const auto server = link_to(options_.server, at, on_change);
    tried_ = server;
    server->begin();
    const auto deadline = loop_.turn_began() + options_.server.connect_timeout;
    while (server->now() == link::state::connecting && !announced_ && steady_clock::now() < deadline)
        co_await nap(deadline);
    bool is_good = false;
    if (server->now() == link::state::ready)
        is_good = co_await is_master(server);
    else
        trouble_ = at.text() + ": " + (server->why().empty() ? "no answer in time" : server->why());
    tried_ = nullptr;
    if (is_good && !is_stopped())
        adopt(server, number);
    else
        server->stop();
    co_return is_good && !is_stopped();
}

task<bool> sentinel_master::is_master(std::shared_ptr<link> server)
{
    const auto write = [](std::string& out) { append_command(out, {"ROLE"}); };
    const auto got = co_await server->ask(server->turn_began(), write);
    const auto name = address_of(*server);
    // A slow master is still the master; the link itself handles a server that does not answer.
    if (got.failed == failure::timeout && server == current_ && state_ == link::state::ready)
        co_return true;
    if (got.failed != failure::none)
        trouble_ = name + ": ROLE: " + std::string(name_of(got.failed));
    else if (got.value().is_error())
        trouble_ = name + ": ROLE: " + std::string(got.value().text());
    else if (got.value().size() == 0 || got.value()[0].text() != "master")
        trouble_ = name + ": Sentinel names it, but it is not a master";
    else
        co_return true;
    co_return false;
}

void sentinel_master::adopt(std::shared_ptr<link> server, std::uint64_t number)
{
    const auto former = std::exchange(current_, std::move(server));
    generation_ = number;
    ++seen_.switches;
    former->stop();
    former_.add(former->seen());
    wake_all();
}

} // namespace headgate::limiter::redis
