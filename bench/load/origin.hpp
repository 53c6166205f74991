// The origin behind every proxy of the benchmark, as lean as it can be: epoll, answers made beforehand, but for a field
// that says how many nanoseconds after the last byte of the request its answer began to leave: X-Origin-Took. The last
// segment of the path says which: /small 128 bytes, /large 64 KiB, /huge 10 MiB, anything else as small. Bodies of
// requests are swallowed.
#pragma once

#include "bench/load/stamps.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace load {

class origin
{
public:
    // Listens on 127.0.0.1; 0 is a port of the kernel's choice. Throws where it cannot.
    explicit origin(std::uint16_t port);
    ~origin();
    origin(const origin&) = delete;
    origin& operator=(const origin&) = delete;

    // Serves whoever is ready, without waiting. How many were.
    int serve_ready();
    int descriptor() const { return set_; } // readable when somebody is ready
    std::uint16_t port() const { return port_; }

private:
    struct peer
    {
        int fd = -1;
        std::string in;             // a head that is not complete
        std::size_t swallowing = 0; // bytes of a request's body that are still to come
        stamp last_came;            // of what was read
        std::string* answer = nullptr;
        std::size_t sent = 0;
    };

    static bool on_event(peer& one);
    static bool serve(peer& one);
    static bool send_answer(peer& one);
    void accept();
    void close(peer& one);

    int listener_ = -1;
    int set_ = -1;
    std::uint16_t port_ = 0;
    std::unordered_map<int, std::unique_ptr<peer>> peers_;
};

} // namespace load
