// Which shared stores do not answer, reported by each worker, for /readyz. May be called from any thread.
#pragma once

#include <map>
#include <mutex>
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

private:
    mutable std::mutex lock_;
    std::map<std::string, std::map<const void*, trouble>> failing_;
};

} // namespace headgate
