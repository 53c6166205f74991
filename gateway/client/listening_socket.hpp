// Sockets that listen on one address, one per worker. The first is bound alone, so that an address at which another
// process listens is refused, also when both start at the same moment; the others share its address (SO_REUSEPORT).
#pragma once

#include "config/values.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace headgate {

// Owns the descriptor until an acceptor takes it over.
class listening_socket
{
public:
    listening_socket() = default;
    explicit listening_socket(int descriptor) : descriptor_(descriptor) {}
    listening_socket(listening_socket&& other) noexcept : descriptor_(other.release()) {}
    listening_socket& operator=(listening_socket&& other) noexcept
    {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~listening_socket();

    bool is_open() const { return descriptor_ >= 0; }
    int release() { return std::exchange(descriptor_, -1); }

private:
    int descriptor_ = -1;
};

struct listening_sockets
{
    config::host_port address; // with the actual port
    std::vector<listening_socket> sockets;
};

// Listens with `count` sockets. Throws std::system_error, with the address and what to do in its text. `ours` are the
// addresses at which this process listens already.
listening_sockets listen_on(const config::host_port& address, std::size_t count,
                            std::span<const config::host_port> ours = {});

} // namespace headgate
