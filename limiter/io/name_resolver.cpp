#include "limiter/io/name_resolver.hpp"

#include "limiter/io/asio.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace headgate {

namespace {

using resolver = asio::ip::basic_resolver<asio::ip::tcp, executor>;

// Runs from the first lookup to the end of the process. Never destroyed: that would wait for name servers.
asio::io_context& names_context()
{
    static auto* const context = [] {
        auto* const made = new asio::io_context;
        std::thread([made] {
            const auto work = asio::make_work_guard(*made);
            made->run();
        }).detach();
        return made;
    }();
    return *context;
}

name_resolver::answer to_answer(error_code error, const resolver::results_type& found)
{
    name_resolver::answer out;
    for (const auto& each : found) {
        const auto address = each.endpoint().address();
        if (std::find(out.addresses.begin(), out.addresses.end(), address) == out.addresses.end())
            out.addresses.push_back(address);
    }
    if (out.addresses.empty())
        out.error = error ? error.message() : "no address";
    return out;
}

} // namespace

// Shared with the lookups that are under way, which may end after the name_resolver is gone.
struct name_resolver::state
{
    std::mutex lock;
    std::map<std::uint64_t, std::function<void(answer)>> receivers; // by lookup; emptied by the destructor
    std::uint64_t last_question = 0;
};

name_resolver::name_resolver() : state_(std::make_shared<state>()) {}

name_resolver::~name_resolver()
{
    const std::lock_guard guard(state_->lock);
    state_->receivers.clear();
}

void name_resolver::ask(std::string host, std::function<void(answer)> receive)
{
    std::uint64_t question = 0;
    {
        const std::lock_guard guard(state_->lock);
        question = ++state_->last_question;
        state_->receivers.emplace(question, std::move(receive));
    }
    // The asio resolver lives on the resolver's thread: destroying it would cancel its lookups.
    asio::post(names_context(), [shared = state_, question, host = std::move(host)] {
        auto lookup = std::make_shared<resolver>(names_context());
        lookup->async_resolve(host, "", [shared, question, lookup](error_code error, resolver::results_type found) {
            auto answered = to_answer(error, found);
            // Under the lock: the name_resolver cannot be destroyed during the call.
            const std::lock_guard guard(shared->lock);
            if (const auto receiver = shared->receivers.extract(question))
                receiver.mapped()(std::move(answered));
        });
    });
}

} // namespace headgate
