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
    void fails(const std::string& store, unsigned worker, trouble what);
    void answers(const std::string& store, unsigned worker);
    // One a store that some worker cannot ask.
    std::map<std::string, trouble> failing() const;

private:
    mutable std::mutex lock_;
    std::map<std::string, std::map<unsigned, trouble>> failing_;
};

} // namespace headgate
