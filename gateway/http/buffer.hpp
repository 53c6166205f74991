// One contiguous, growing buffer: heads and small answers are written into it and leave in one send. It keeps its
// capacity when cleared, so a warm connection allocates nothing. Not a queue: bytes are not removed from its front.
#pragma once

#include "gateway/http/text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace headgate::http {

// A number, to be written in decimal.
struct decimal
{
    std::uint64_t value;
};

class byte_buffer
{
public:
    byte_buffer() = default;
    explicit byte_buffer(std::size_t capacity) { reserve(capacity); }
    byte_buffer(byte_buffer&& other) noexcept
        : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)),
          capacity_(std::exchange(other.capacity_, 0))
    {}
    byte_buffer& operator=(byte_buffer&& other) noexcept
    {
        bytes_ = std::move(other.bytes_);
        size_ = std::exchange(other.size_, 0);
        capacity_ = std::exchange(other.capacity_, 0);
        return *this;
    }

    char* data() noexcept { return bytes_.get(); }
    const char* data() const noexcept { return bytes_.get(); }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    std::size_t capacity() const noexcept { return capacity_; }
    std::string_view view() const noexcept { return {bytes_.get(), size_}; }

    void clear() noexcept { size_ = 0; }
    // Frees the memory: for a connection that becomes idle.
    void release() noexcept
    {
        bytes_.reset();
        size_ = capacity_ = 0;
    }
    // Shortens the content to `size`; never extends it.
    void truncate(std::size_t size) noexcept { size_ = std::min(size_, size); }

    void reserve(std::size_t capacity)
    {
        if (capacity > capacity_)
            grow(capacity);
    }

    // Returns room for `extra` bytes after the end. Bytes written there become content with `commit`.
    char* prepare(std::size_t extra)
    {
        if (capacity_ - size_ < extra)
            grow(size_ + extra);
        return bytes_.get() + size_;
    }
    void commit(std::size_t written) noexcept { size_ += written; }

    // Appends pieces, for which room is made once: texts, single bytes, numbers in decimal.
    template <class... Parts>
    void append(const Parts&... parts)
    {
        char* const begun = prepare((most_bytes(parts) + ...));
        char* at = begun;
        ((at = write(at, parts)), ...);
        size_ += static_cast<std::size_t>(at - begun);
    }
    [[gnu::noinline]] void append_number(std::uint64_t value) { append(decimal{value}); }

private:
    static constexpr std::size_t most_bytes(std::string_view text) { return text.size(); }
    static constexpr std::size_t most_bytes(char) { return 1; }
    static constexpr std::size_t most_bytes(decimal) { return 20; }
    static char* write(char* at, std::string_view text)
    {
        if (!text.empty())
            std::memcpy(at, text.data(), text.size());
        return at + text.size();
    }
    static char* write(char* at, char c)
    {
        *at = c;
        return at + 1;
    }
    static char* write(char* at, decimal number) { return write_decimal(at, number.value); }

    // Not inline, like append_number: at every append it would enlarge the code of the request path.
    [[gnu::noinline, gnu::cold]] void grow(std::size_t wanted)
    {
        const auto capacity = std::max({wanted, capacity_ * 2, std::size_t{256}});
        std::unique_ptr<char[]> larger(new char[capacity]); // not value-initialised: every byte is written first
        if (size_ != 0)
            std::memcpy(larger.get(), bytes_.get(), size_);
        bytes_ = std::move(larger);
        capacity_ = capacity;
    }

    std::unique_ptr<char[]> bytes_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

// Copies a small body behind its head: one flat piece costs the kernel less than two.
inline void join_small(byte_buffer& head, std::string_view& body)
{
    constexpr std::size_t small = 1024;
    if (head.empty() || body.size() > small)
        return;
    head.append(body);
    body = {};
}

} // namespace headgate::http
