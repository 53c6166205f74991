#include "limiter/io/name_resolver.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <netdb.h>
#include <sys/socket.h>
#include <thread>
#include <utility>

namespace headgate {

namespace {

name_resolver::answer look_up(const std::string& host)
{
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
    if (status != 0)
        return {{}, ::gai_strerror(status)};
    name_resolver::answer out;
    for (const auto* each = found; each; each = each->ai_next) {
        boost::asio::ip::tcp::endpoint endpoint;
        if (each->ai_addrlen > endpoint.capacity())
            continue;
        endpoint.resize(each->ai_addrlen);
        std::memcpy(endpoint.data(), each->ai_addr, each->ai_addrlen);
        if (std::find(out.addresses.begin(), out.addresses.end(), endpoint.address()) == out.addresses.end())
            out.addresses.push_back(endpoint.address());
    }
    ::freeaddrinfo(found);
    if (out.addresses.empty())
        out.error = "no address";
    return out;
}

} // namespace

// Shared with the thread, which may outlive the resolver by one lookup.
struct name_resolver::state
{
    struct question
    {
        std::string host;
        std::function<void(answer)> receive;
    };
    std::mutex lock;
    std::condition_variable changed;
    std::deque<question> questions;
    bool running = false, stopped = false;
};

name_resolver::name_resolver() : state_(std::make_shared<state>()) {}

name_resolver::~name_resolver()
{
    std::lock_guard guard(state_->lock);
    state_->stopped = true;
    state_->questions.clear();
    state_->changed.notify_all();
}

void name_resolver::ask(std::string host, std::function<void(answer)> receive)
{
    std::lock_guard guard(state_->lock);
    state_->questions.push_back({std::move(host), std::move(receive)});
    if (!std::exchange(state_->running, true))
        std::thread(run, state_).detach();
    state_->changed.notify_all();
}

void name_resolver::run(const std::shared_ptr<state>& shared)
{
    std::unique_lock guard(shared->lock);
    for (;;) {
        shared->changed.wait(guard, [&] { return shared->stopped || !shared->questions.empty(); });
        if (shared->stopped)
            return;
        const auto asked = std::move(shared->questions.front());
        shared->questions.pop_front();
        guard.unlock();
        auto found = look_up(asked.host);
        guard.lock();
        // Under the lock: the resolver cannot go while somebody is told.
        if (!shared->stopped)
            asked.receive(std::move(found));
    }
}

} // namespace headgate
