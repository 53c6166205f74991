// The memory for the entries of one shard: blocks of 8-byte units cut from 64 KiB chunks and reused by exact size.
// Large blocks (long sliding logs) are allocated alone. The arena never exceeds its limit. A block is named by 32 bits
// instead of a pointer.
#pragma once

#include "limiter/memory/chunk_source.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace headgate::limiter {

class entry_arena
{
public:
    using ref = std::uint32_t; // 0 is no block

    static constexpr std::size_t chunk_units = chunk_source::chunk_bytes / 8;
    static constexpr std::size_t largest_small = 128; // units; larger blocks are allocated alone

    // Returns the memory that `bytes` of blocks may occupy: the last chunk may be partly empty.
    static constexpr std::size_t bound(std::size_t bytes) { return bytes + (chunk_units + largest_small) * 8; }

    void attach(chunk_source& source) { source_ = &source; }
    void set_limit(std::size_t bytes) { limit_ = bytes; }

    // Returns 0 when the limit is reached and no free block fits.
    ref allocate(std::size_t units);
    void release(ref block, std::size_t units);

    std::uint64_t* at(ref block) const { return chunks_[block / chunk_units].units + block % chunk_units; }

    std::size_t bytes() const { return bytes_; } // taken from the system

private:
    struct chunk
    {
        std::uint64_t* units = nullptr;
        std::unique_ptr<std::uint64_t[]> own; // the memory of a large block
    };
    enum class made_of
    {
        shared_chunk,
        own_memory
    };
    bool add_chunk(std::size_t units, made_of memory, std::size_t& index);
    ref take_free(std::size_t units);
    void put_free(ref block, std::size_t units);

    std::vector<chunk> chunks_ = std::vector<chunk>(1); // chunk 0 is never used, so that no block is named 0
    chunk_source* source_ = nullptr;
    std::vector<std::size_t> unused_;
    std::array<ref, largest_small + 1> free_{};
    ref next_ = 0;
    std::size_t left_ = 0; // free units at next_ in the newest chunk
    std::size_t bytes_ = 0;
    std::size_t limit_ = 0;
};

} // namespace headgate::limiter
