// A pipe between two sockets (splice): bytes pass through it inside the kernel and are never copied into the process.
// It is filled only when it is empty.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace headgate {

class kernel_pipe
{
public:
    kernel_pipe() = default; // no pipe
    kernel_pipe(kernel_pipe&& other) noexcept
        : in_(std::exchange(other.in_, -1)), out_(std::exchange(other.out_, -1)), held_(std::exchange(other.held_, 0))
    {}
    kernel_pipe& operator=(kernel_pipe other) noexcept
    {
        std::swap(in_, other.in_);
        std::swap(out_, other.out_);
        std::swap(held_, other.held_);
        return *this;
    }
    ~kernel_pipe();

    // Opens a pipe. Returns no pipe when the kernel refuses, or gives only a tiny one.
    static kernel_pipe open();
    explicit operator bool() const { return in_ >= 0; }
    std::size_t held() const { return held_; } // bytes

    // Like recv and send: return the number of bytes, or -1 and errno.
    std::ptrdiff_t fill_from(int socket, std::size_t most);
    std::ptrdiff_t empty_into(int socket);

private:
    int in_ = -1, out_ = -1; // the ends for writing and for reading
    std::size_t held_ = 0;
};

// The pipes of one worker. They hold kernel memory, so their number is bounded; without a pipe, bytes are copied.
class pipe_pool
{
public:
    static constexpr std::size_t most = 32;

    // Returns no pipe when all are in use.
    kernel_pipe take();
    // Returns a pipe to the pool. A pipe that still holds bytes is closed instead.
    void give_back(kernel_pipe pipe);
    // To be called when the kernel, or a filter of its calls, does not allow splicing: no pipe is given out from now
    // on.
    void give_up() { most_ = 0; }

private:
    std::vector<kernel_pipe> spare_;
    std::size_t taken_ = 0, most_ = most;
};

// Makes writing to a pipe or socket that is closed at the other end an error in this thread, not a SIGPIPE.
void block_broken_pipes();

} // namespace headgate
