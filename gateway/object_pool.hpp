// Reusable objects of one worker, last in, first out: the object used last is still in the CPU's cache.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace headgate {

template <class T>
class object_pool
{
public:
    std::unique_ptr<T> take()
    {
        if (spare_.empty())
            return std::make_unique<T>();
        auto object = std::move(spare_.back());
        spare_.pop_back();
        return object;
    }
    void give_back(std::unique_ptr<T> object)
    {
        if (spare_.size() < most_spare)
            spare_.push_back(std::move(object));
    }
    void clear() { spare_.clear(); }

private:
    static constexpr std::size_t most_spare = 256;
    std::vector<std::unique_ptr<T>> spare_;
};

} // namespace headgate
