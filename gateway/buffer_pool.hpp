// Large read buffers of one worker, last in, first out: few are in use at a time, and the buffer used last is still in
// the CPU's cache.
#pragma once

#include "gateway/http/buffer.hpp"

#include <utility>
#include <vector>

namespace headgate {

class buffer_pool
{
public:
    static constexpr std::size_t size = 68 * 1024; // 64 KiB of body and its head

    http::byte_buffer take()
    {
        if (spare_.empty())
            return http::byte_buffer(size);
        auto buffer = std::move(spare_.back());
        spare_.pop_back();
        return buffer;
    }
    // Keeps the buffer for reuse, unless it has no memory or has grown.
    void give_back(http::byte_buffer buffer)
    {
        if (buffer.capacity() < size || buffer.capacity() > 4 * size || spare_.size() >= most_spare)
            return;
        buffer.clear();
        spare_.push_back(std::move(buffer));
    }

private:
    static constexpr std::size_t most_spare = 64;
    std::vector<http::byte_buffer> spare_;
};

// A buffer of the pool. Its destructor gives it back, if that was not done before.
class pooled_buffer
{
public:
    explicit pooled_buffer(buffer_pool& from) : pool_(from) {}
    ~pooled_buffer() { give_back(); }
    pooled_buffer(const pooled_buffer&) = delete;
    pooled_buffer& operator=(const pooled_buffer&) = delete;

    // Takes one if there is none, and empties it.
    void start()
    {
        if (bytes_.capacity() == 0)
            bytes_ = pool_.take();
        bytes_.clear();
    }
    void give_back() { pool_.give_back(std::exchange(bytes_, {})); }
    http::byte_buffer& bytes() { return bytes_; }
    const http::byte_buffer& bytes() const { return bytes_; }

private:
    buffer_pool& pool_;
    http::byte_buffer bytes_;
};

} // namespace headgate
