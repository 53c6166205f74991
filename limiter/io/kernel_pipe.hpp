// A pipe between two sockets: bytes that nobody has to look at pass through it inside the kernel and are never copied
// into the process (tcp_socket::read_now and send_now). Filled when it is empty, emptied before it is filled again.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace headgate {

class kernel_pipe
{
public:
    kernel_pipe() = default; // none
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

    // None where the kernel gives none, or only a tiny one.
    static kernel_pipe open();
    explicit operator bool() const { return in_ >= 0; }
    std::size_t held() const { return held_; } // bytes

    // As recv and send: how many bytes it was, or -1 and errno.
    std::ptrdiff_t fill_from(int socket, std::size_t most);
    std::ptrdiff_t empty_into(int socket);

private:
    int in_ = -1, out_ = -1; // it is written to and read from
    std::size_t held_ = 0;
};

// Those of one worker. What a pipe holds is the kernel's memory, so there are only so many; who gets none copies.
class pipe_pool
{
public:
    static constexpr std::size_t most = 32;

    // None when all are taken.
    kernel_pipe take();
    // One that holds something is closed, and what it holds is lost.
    void give_back(kernel_pipe pipe);
    // The kernel, or whoever guards its calls, does not let bytes pass through pipes: from now on there are none.
    void give_up() { most_ = 0; }

private:
    std::vector<kernel_pipe> spare_;
    std::size_t taken_ = 0, most_ = most;
};

// In this thread: to write to a pipe or a socket that nobody reads is an error of the call, not the end of the process.
void block_broken_pipes();

} // namespace headgate
