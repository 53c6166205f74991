#include "gateway/upstream/server_addresses.hpp"

#include "gateway/client/client.hpp"
#include "gateway/client/client_watch.hpp"
#include "gateway/worker.hpp"
#include "limiter/io/event.hpp"

#include <boost/asio/post.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace headgate {

namespace {

using http::http_error;

constexpr std::chrono::seconds ask_again{5}; // at the earliest, after the last question

} // namespace

// A request that needs an address before there is one.
class server_addresses::waiting_request final : public cancellable, private deadline
{
public:
    waiting_request(server_addresses& of, deadline_list& within) : of_(of)
    {
        of_.waiting_.push_back(this);
        within.arm(*this, std::chrono::steady_clock::now());
    }
    task<> wait()
    {
        while (is_waiting_)
            co_await ended_.wait();
    }
    bool timed_out() const { return timed_out_; }

    // It goes on from the event loop. Its place in the list has been taken off.
    void end()
    {
        is_waiting_ = false;
        disarm();
        ended_.notify_later(of_.worker_.loop().get_executor());
    }
    void cancel() override
    {
        if (std::erase(of_.waiting_, this) > 0)
            end();
    }

private:
    void on_deadline() override
    {
        timed_out_ = true;
        cancel();
    }

    server_addresses& of_;
    bool is_waiting_ = true;
    bool timed_out_ = false;
    event ended_;
};

server_addresses::server_addresses(worker& owner, const config::host_port& server) : worker_(owner), server_(server)
{
    boost::system::error_code error;
    const auto literal = asio::ip::make_address(server.host, error);
    is_literal_ = !error;
    if (is_literal_)
        all_.emplace_back(literal, server.port);
}

void server_addresses::refresh()
{
    const auto now = std::chrono::steady_clock::now();
    if (is_literal_ || asking_ || stopped_ || (asked_ != steady_time{} && now - asked_ < ask_again))
        return;
    asking_ = true;
    asked_ = now;
    worker_.names().ask(server_.host, [self = weak_from_this(), &loop = worker_.loop()](name_resolver::answer said) {
        asio::post(loop.context(), [self, said = std::move(said)] {
            if (const auto here = self.lock())
                here->receive(said);
        });
    });
}

void server_addresses::receive(const name_resolver::answer& said)
{
    asking_ = false;
    if (said.addresses.empty()) {
        spdlog::warn("no address for upstream server {}: {}{}", server_.text(), said.error,
                     all_.empty() ? "" : "; the last one is kept");
    } else {
        all_.clear();
        turn_ = 0;
        for (const auto& address : said.addresses)
            all_.emplace_back(address, server_.port);
    }
    wake_all();
}

const asio::ip::tcp::endpoint& server_addresses::next()
{
    const auto& chosen = all_[turn_];
    turn_ = turn_ + 1 < all_.size() ? turn_ + 1 : 0;
    return chosen;
}

task<http_error> server_addresses::until_known(client& from, deadline_list& within)
{
    if (all_.empty())
        refresh();
    if (all_.empty() && asking_) {
        waiting_request mine(*this, within);
        const client_watch watch(from, mine);
        co_await mine.wait();
        if (watch.client_is_gone())
            co_return http_error::client_gone;
        if (mine.timed_out())
            co_return http_error::upstream_connect_timeout;
    }
    co_return all_.empty() ? http_error::upstream_unresolved : http_error::none;
}

void server_addresses::stop()
{
    stopped_ = true;
    wake_all();
}

void server_addresses::wake_all()
{
    for (auto* each : std::exchange(waiting_, {}))
        each->end();
}

} // namespace headgate
