#include "gateway/request/hold.hpp"

#include "gateway/request/request.hpp"
#include "gateway/worker.hpp"

#include <algorithm>

namespace headgate {

task<bool> hold(request& r, std::chrono::microseconds time)
{
    constexpr std::chrono::microseconds look_again{250'000};
    steady_timer timer(r.worker.loop().context());
    const auto end = std::chrono::steady_clock::now() + time;
    for (auto now = end - time; now < end; now = std::chrono::steady_clock::now()) {
        timer.expires_at(std::min(end, now + look_again));
        co_await timer.async_wait(as_result);
        if (r.client.look() != presence::here)
            co_return false;
    }
    co_return true;
}

} // namespace headgate
