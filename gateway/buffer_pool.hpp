// Large read buffers of one worker, last in, first out: few are in use at a time, and the one handed out is still warm.
#pragma once

#include "gateway/http/buffer.hpp"

#include <vector>

namespace headgate {

class buffer_pool
{
public:
    static constexpr std::size_t size = 68 * 1024; // 64 KiB of body with their head

    http::byte_buffer take()
    {
        if (spare_.empty())
            return http::byte_buffer(size);
        auto buffer = std::move(spare_.back());
        spare_.pop_back();
        return buffer;
    }
    // Nothing happens for a buffer without memory; one that has grown is not kept.
    void give_back(http::byte_buffer& buffer)
    {
        if (buffer.capacity() >= size && buffer.capacity() <= 4 * size && spare_.size() < most_spare) {
            buffer.clear();
            spare_.push_back(std::move(buffer));
        }
        buffer.release();
    }

private:
    static constexpr std::size_t most_spare = 64;
    std::vector<http::byte_buffer> spare_;
};

} // namespace headgate
