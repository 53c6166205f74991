// Which shared stores do not answer, as every worker sees it: for /readyz. From any thread.
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
        bool refuses = false; // requests are refused meanwhile
    };
    // `who` is a worker's side of the store: after a reload there may be two of one worker for a moment, and what the
    // one that ends has to say must not hide what its successor meets.
    void fails(const std::string& store, const void* who, trouble what);
    void answers(const std::string& store, const void* who);
    // One a store that somebody cannot ask.
    std::map<std::string, trouble> failing() const;

private:
    mutable std::mutex lock_;
    std::map<std::string, std::map<const void*, trouble>> failing_;
};

} // namespace headgate
