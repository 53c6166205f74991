// Memory for coroutine frames and pending socket operations: freelists of the thread, by size. After warm-up a request
// allocates nothing. A block may be freed on another thread; it then serves that one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

namespace headgate {

class frame_pool
{
public:
    static void* allocate(std::size_t size)
    {
        const auto cls = class_of(size);
        if (cls >= classes)
            return ::operator new(size);
        auto& pool = of_this_thread();
        if (auto* block = pool.free_[cls]) {
            pool.free_[cls] = block->next;
            --pool.count_[cls];
            return block;
        }
        return ::operator new((cls + 1) * step);
    }
    static void release(void* at, std::size_t size) noexcept
    {
        const auto cls = class_of(size);
        auto& pool = of_this_thread();
        if (cls >= classes || pool.gone_ || pool.count_[cls] >= most_kept)
            return ::operator delete(at);
        pool.free_[cls] = new (at) block{pool.free_[cls]};
        ++pool.count_[cls];
    }

private:
    struct block
    {
        block* next;
    };
    static constexpr std::size_t step = 64;
    static constexpr std::size_t classes = 64;     // up to 4 KiB
    static constexpr std::size_t most_kept = 4096; // a class: a burst does not stay resident for ever

    static std::size_t class_of(std::size_t size) { return (size - 1) / step; }
    static frame_pool& of_this_thread()
    {
        static thread_local frame_pool pool;
        return pool;
    }
    ~frame_pool()
    {
        gone_ = true; // what is freed after the thread's end goes straight back
        for (auto* first : free_) {
            while (first) {
                auto* next = first->next;
                ::operator delete(first);
                first = next;
            }
        }
        free_.fill(nullptr);
    }

    std::array<block*, classes> free_{};
    std::array<std::uint32_t, classes> count_{};
    bool gone_ = false;
};

template <class T>
struct pool_allocator
{
    using value_type = T;
    pool_allocator() = default;
    template <class U>
    pool_allocator(const pool_allocator<U>&) noexcept
    {}
    T* allocate(std::size_t n) { return static_cast<T*>(frame_pool::allocate(n * sizeof(T))); }
    void deallocate(T* at, std::size_t n) noexcept { frame_pool::release(at, n * sizeof(T)); }
    template <class U>
    friend bool operator==(const pool_allocator&, const pool_allocator<U>&)
    {
        return true;
    }
};

} // namespace headgate
