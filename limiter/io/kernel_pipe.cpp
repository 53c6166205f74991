#include "limiter/io/kernel_pipe.hpp"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace headgate {

namespace {

// In pages of 4 KiB, each of which may hold only a part of a segment. All pipes of an unprivileged user together get
// 64 MiB; further pipes have two pages.
constexpr int size = 256 * 1024;
constexpr int least_size = 64 * 1024;

} // namespace

kernel_pipe kernel_pipe::open()
{
    kernel_pipe made;
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0)
        return made;
    made.out_ = ends[0];
    made.in_ = ends[1];
    const auto given = ::fcntl(made.in_, F_GETPIPE_SZ);
    if (given < size && ::fcntl(made.in_, F_SETPIPE_SZ, size) < 0 && given < least_size)
        return {};
    return made;
}

kernel_pipe::~kernel_pipe()
{
    if (in_ < 0)
        return;
    ::close(in_);
    ::close(out_);
}

std::ptrdiff_t kernel_pipe::fill_from(int socket, std::size_t most)
{
    const auto n = ::splice(socket, nullptr, in_, nullptr, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n > 0)
        held_ += static_cast<std::size_t>(n);
    return n;
}

std::ptrdiff_t kernel_pipe::empty_into(int socket)
{
    const auto n = ::splice(out_, nullptr, socket, nullptr, held_, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n > 0)
        held_ -= static_cast<std::size_t>(n);
    return n;
}

kernel_pipe pipe_pool::take()
{
    if (taken_ >= most_)
        return {};
    if (spare_.empty())
        spare_.push_back(kernel_pipe::open());
    auto pipe = std::move(spare_.back());
    spare_.pop_back();
    if (pipe)
        ++taken_;
    return pipe;
}

void pipe_pool::give_back(kernel_pipe pipe)
{
    --taken_;
    if (pipe.held() == 0)
        spare_.push_back(std::move(pipe));
}

void block_broken_pipes()
{
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

} // namespace headgate
