// The memory of all shards of one store, in chunks. A large store takes huge pages: with millions of keys in small
// pages, address translation costs as much as reading the entry. A small store allocates each chunk alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace headgate::limiter {

class chunk_source
{
public:
    static constexpr std::size_t chunk_bytes = 64 * 1024;
    static constexpr std::size_t huge_page = 2 * 1024 * 1024;

    // Stores of at least this many bytes take huge pages. Their unused memory is at most one huge page.
    static constexpr std::size_t large_store = 8 * huge_page;

    // Tells how large the store may become.
    void expect(std::size_t bytes);
    // Returns a chunk, which lives as long as the source.
    std::uint64_t* take();
    std::size_t unused_bytes() const;

private:
    struct free_memory
    {
        void operator()(void* memory) const { std::free(memory); }
    };

    mutable std::mutex lock_;
    bool huge_ = false;
    std::vector<std::unique_ptr<void, free_memory>> pages_;
    std::byte* next_ = nullptr;
    std::size_t left_ = 0;
};

} // namespace headgate::limiter
