// TCP keep-alive: finds a peer that has vanished without a word, by a power cut or a NAT that forgot it, while neither
// side sends anything.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace headgate {

// Probes the peer after a minute of silence; without an answer the connection fails a minute later. Accepted sockets
// inherit it from the listening one. Does nothing for other sockets than TCP.
inline void keep_alive(int socket)
{
    const int on = 1, silence = 60, between = 15, probes = 4;
    ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &silence, sizeof silence);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

} // namespace headgate
