#include "limiter/memory/entry_arena.hpp"

namespace headgate::limiter {

bool entry_arena::add_chunk(std::size_t units, made_of memory, std::size_t& index)
{
    if (bytes_ + units * 8 > bound(limit_))
        return false;
    if (unused_.empty()) {
        unused_.push_back(chunks_.size());
        chunks_.emplace_back();
    }
    index = unused_.back();
    unused_.pop_back();
    auto& added = chunks_[index];
    if (memory == made_of::own_memory)
        added.own = std::make_unique_for_overwrite<std::uint64_t[]>(units);
    added.units = memory == made_of::own_memory ? added.own.get() : source_->take();
    bytes_ += units * 8;
    return true;
}

void entry_arena::put_free(ref block, std::size_t units)
{
    *at(block) = free_[units];
    free_[units] = block;
}

// Takes a free block of the exact size, or splits a larger one.
entry_arena::ref entry_arena::take_free(std::size_t units)
{
    for (std::size_t size = units; size <= largest_small; ++size) {
        const ref block = free_[size];
        if (block == 0)
            continue;
        free_[size] = static_cast<ref>(*at(block));
        if (size > units)
            put_free(block + static_cast<ref>(units), size - units);
        return block;
    }
    return 0;
}

entry_arena::ref entry_arena::allocate(std::size_t units)
{
    std::size_t index = 0;
    if (units > largest_small)
        return add_chunk(units, made_of::own_memory, index) ? static_cast<ref>(index * chunk_units) : 0;
    if (const ref exact = free_[units]) {
        free_[units] = static_cast<ref>(*at(exact));
        return exact;
    }
    if (left_ < units) {
        if (!add_chunk(chunk_units, made_of::shared_chunk, index))
            return take_free(units);
        if (left_ > 0)
            put_free(next_, left_);
        next_ = static_cast<ref>(index * chunk_units);
        left_ = chunk_units;
    }
    const ref block = next_;
    next_ += static_cast<ref>(units);
    left_ -= units;
    return block;
}

void entry_arena::release(ref block, std::size_t units)
{
    if (units <= largest_small)
        return put_free(block, units);
    const std::size_t index = block / chunk_units;
    chunks_[index].own.reset();
    bytes_ -= units * 8;
    unused_.push_back(index);
}

} // namespace headgate::limiter
