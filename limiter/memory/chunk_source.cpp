#include "limiter/memory/chunk_source.hpp"

#include <new>
#include <sys/mman.h>

namespace headgate::limiter {

void chunk_source::expect(std::size_t bytes)
{
    std::lock_guard guard(lock_);
    huge_ = bytes >= large_store;
}

std::uint64_t* chunk_source::take()
{
    std::lock_guard guard(lock_);
    if (left_ == 0) {
        const auto bytes = huge_ ? huge_page : chunk_bytes;
        pages_.emplace_back(std::aligned_alloc(bytes, bytes));
        if (!pages_.back())
            throw std::bad_alloc();
        if (huge_)
            ::madvise(pages_.back().get(), bytes, MADV_HUGEPAGE); // a hint; the memory is usable without it
        next_ = static_cast<std::byte*>(pages_.back().get());
        left_ = bytes;
    }
    auto* chunk = next_;
    next_ += chunk_bytes;
    left_ -= chunk_bytes;
    return reinterpret_cast<std::uint64_t*>(chunk);
}

std::size_t chunk_source::unused_bytes() const
{
    std::lock_guard guard(lock_);
    return left_;
}

} // namespace headgate::limiter
