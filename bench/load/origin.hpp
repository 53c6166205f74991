// The origin behind every proxy of the benchmark, as cheap as it can be: epoll and prepared answers. The last segment
// of the path chooses the answer: /small 128 bytes, /large 64 KiB, /huge 10 MiB, anything else as small. Request bodies
// are dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace load {

class origin
{
public:
    // Listens on 127.0.0.1; with port 0 the kernel chooses one. Throws when it cannot listen.
    explicit origin(std::uint16_t port);
    ~origin();
    origin(const origin&) = delete;
    origin& operator=(const origin&) = delete;

    // Serves the connections that are ready, without waiting. Returns whether there was one.
    bool serve_ready();
    int descriptor() const { return set_; } // readable when a connection is ready
    std::uint16_t port() const { return port_; }

private:
    struct peer
    {
        int fd = -1;
        std::string in;             // an incomplete head
        std::size_t swallowing = 0; // bytes of a request's body that are still to come
        const std::string* answer = nullptr;
        std::size_t sent = 0;
    };

    static bool on_event(peer& one);
    static bool answer_requests(peer& one);
    static bool send_answer(peer& one);
    void accept();
    void close(peer& one);

    int listener_ = -1;
    int set_ = -1;
    std::uint16_t port_ = 0;
    std::unordered_map<int, std::unique_ptr<peer>> peers_;
};

} // namespace load
