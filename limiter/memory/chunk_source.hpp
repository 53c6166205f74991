// Where the shards of one store get the chunks of their arenas from. A large store takes memory in huge pages: with
// millions of keys in small ones, finding the page costs as much as fetching the entry. A small store takes each chunk
// by itself.
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

    // A store of at least this many bytes takes huge pages; what it has of one and nobody uses is at most a huge page.
    static constexpr std::size_t large_store = 8 * huge_page;

    void expect(std::size_t bytes);
    // Chunks live as long as the source.
    std::uint64_t* take();
    std::size_t unused_bytes() const;

private:
    struct freed
    {
        void operator()(void* memory) const { std::free(memory); }
    };

    mutable std::mutex lock_;
    bool huge_ = false;
    std::vector<std::unique_ptr<void, freed>> pages_;
    std::byte* next_ = nullptr;
    std::size_t left_ = 0;
};

} // namespace headgate::limiter
