// Waits until a number of coroutines of one thread are done.
#pragma once

#include "limiter/io/event.hpp"

#include <cstddef>

namespace headgate::limiter::redis {

class barrier
{
public:
    explicit barrier(std::size_t n) : left_(n) {}
    void arrive()
    {
        if (--left_ == 0)
            done_.notify();
    }
    task<void> wait()
    {
        while (left_ > 0)
            co_await done_.wait();
    }

private:
    std::size_t left_;
    event done_;
};

} // namespace headgate::limiter::redis
