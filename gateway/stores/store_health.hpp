// Which stores are in trouble, for the log and /readyz: shared stores that do not answer, as each worker reports, and
// memory stores that are full. May be called from any thread.
#pragma once

#include "gateway/compiled/chain.hpp"
#include "limiter/io/asio.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace headgate {

class store_health
{
public:
    struct trouble
    {
        std::string why;
        bool refuses = false; // requests are refused during the outage
    };
    // `reporter` is a worker's shared_store. After a reload one worker may have two for a moment, and the report of the
    // old one must not hide that of the new one.
    void fails(const std::string& store, const void* reporter, trouble what);
    void answers(const std::string& store, const void* reporter);
    // Returns one entry per store that at least one worker cannot use.
    std::map<std::string, trouble> failing() const;

    // Adds memory stores. They are never removed.
    void watch(const store_map& stores);
    // Looks, at most once per second, which of them were full since the last look, and logs that once per minute.
    void look(steady_time now);
    // Returns the stores in which overflow counters have decided within the last minute.
    std::vector<std::string> full(steady_time now) const;

private:
    struct watched_store
    {
        const limiter::memory_store* store = nullptr;
        std::uint64_t shared_takes = 0, logged_takes = 0; // seen, and told of by the last line
        std::optional<steady_time> was_full, logged;
    };

    mutable std::mutex lock_;
    std::map<std::string, std::map<const void*, trouble>> failing_;
    std::map<std::string, watched_store> memory_stores_;
    steady_time looked_{};
};

} // namespace headgate
