#include "limiter/io/system_calls.hpp"

#include <cerrno>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace headgate {

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

ssize_t call(long number, int fd, const void* at, std::size_t size, long flags)
{
    long result = number;
    register long fourth asm("r10") = flags;
    register long fifth asm("r8") = 0; // no address
    register long sixth asm("r9") = 0;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(static_cast<long>(fd)), "S"(at), "d"(size), "r"(fourth), "r"(fifth), "r"(sixth)
                 : "rcx", "r11", "memory");
    if (result >= 0)
        return result;
    errno = static_cast<int>(-result);
    return -1;
}

} // namespace

ssize_t receive(int fd, char* at, std::size_t most) { return call(SYS_recvfrom, fd, at, most, 0); }
ssize_t send_bytes(int fd, const char* at, std::size_t size, int flags)
{
    return call(SYS_sendto, fd, at, size, MSG_NOSIGNAL | flags);
}

#else

ssize_t receive(int fd, char* at, std::size_t most) { return ::recv(fd, at, most, 0); }
ssize_t send_bytes(int fd, const char* at, std::size_t size, int flags)
{
    return ::send(fd, at, size, MSG_NOSIGNAL | flags);
}

#endif

} // namespace headgate
