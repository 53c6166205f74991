// When bytes came, by the kernel's word: it stamps each segment as it arrives, however late somebody reads it (before
// Linux 5.18 a little before that: as it is handed to the receiving side). Stamps are of the wall clock; how old one
// is, is what anybody wants to know.
#pragma once

#include "bench/load/read_clock.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <sys/socket.h>
#include <sys/types.h>

namespace load {

using namespace std::chrono_literals;

struct stamp
{
    std::chrono::nanoseconds when{0};

    bool is_known() const { return when.count() != 0; }
    // 0 where it is not known, or the clock has been set back.
    std::chrono::nanoseconds age() const { return is_known() ? std::max(0ns, read_clock(CLOCK_REALTIME) - when) : 0ns; }
};

inline void ask_for_stamps(int fd)
{
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
}

// The kernel stamps while any socket wants it to, and a thread of its own turns that on, which has to wait where one of
// real-time priority never sleeps. So one socket wants it from now until the process ends.
inline void keep_stamping()
{
    static const int wanting = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ask_for_stamps(wanting);
}

// recv, and when the last of those bytes came, where the kernel tells.
inline ssize_t receive(int fd, char* at, std::size_t most, int flags, stamp& came)
{
    iovec part{at, most};
    alignas(cmsghdr) char beside[CMSG_SPACE(sizeof(timespec))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = beside;
    message.msg_controllen = sizeof beside;
    const auto got = ::recvmsg(fd, &message, flags);
    if (got <= 0)
        return got;
    came = {};
    for (auto* each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
        timespec when{};
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_TIMESTAMPNS)
            continue;
        std::memcpy(&when, CMSG_DATA(each), sizeof when);
        came.when = in_nanoseconds(when);
    }
    return got;
}

} // namespace load
