// recv and send as the kernel has them. In a program with threads the C library makes each a point where a thread may
// be cancelled, which takes two locked instructions a call; nobody cancels threads here. Sanitizers watch the
// library's.
#pragma once

#include <cstddef>
#include <sys/types.h>

namespace headgate {

ssize_t receive(int fd, char* at, std::size_t most);
ssize_t send_bytes(int fd, const char* at, std::size_t size, int flags = 0); // never raises SIGPIPE

} // namespace headgate
