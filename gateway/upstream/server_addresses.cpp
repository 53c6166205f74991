#include "gateway/upstream/server_addresses.hpp"

#include "gateway/request/session.hpp"
#include "gateway/request/watch_client.hpp"
#include "gateway/worker.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <coroutine>

namespace headgate {

namespace {

using http::http_error;

constexpr std::chrono::seconds ask_again{5}; // at the earliest, after the last question

} // namespace

// A request that needs an address before there is one.
class server_addresses::waiter final : private deadline
{
public:
    waiter(server_addresses& of, deadline_list& within) : of_(of), within_(within) {}

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting)
    {
        waiting_ = waiting;
        of_.waiting_.push_back(this);
        within_.arm(*this, std::chrono::steady_clock::now());
    }
    void await_resume() const noexcept {}
    bool timed_out() const { return timed_out_; }

    // Goes on from the event loop. Its place in the list has been taken off.
    void wake()
    {
        disarm();
        of_.worker_.sockets().resume_later(waiting_);
    }
    // The client has gone.
    void cancel()
    {
        if (std::erase(of_.waiting_, this) > 0)
            wake();
    }

private:
    void on_deadline() override
    {
        timed_out_ = true;
        cancel();
    }

    server_addresses& of_;
    deadline_list& within_;
    std::coroutine_handle<> waiting_;
    bool timed_out_ = false;
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
    worker_.names().ask(server_.host, [self = weak_from_this(), &loop = worker_.sockets()](name_resolver::answer said) {
        loop.post([self, said = std::move(said)] {
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

task<http_error> server_addresses::until_known(session& client, deadline_list& within)
{
    if (all_.empty())
        refresh();
    if (all_.empty() && asking_) {
        waiter mine(*this, within);
        watch_client watch(client, mine);
        co_await mine;
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
        each->wake();
}

} // namespace headgate
