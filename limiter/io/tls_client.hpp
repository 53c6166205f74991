// The client's side of TLS without sockets: bytes from the server go in, bytes for the server come out, and plain text
// passes at the other end. The server's certificate is always verified, its chain and its name; nothing turns that off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct ssl_st;
struct ssl_ctx_st;

namespace headgate {

struct tls_client_files // PEM
{
    std::string ca;          // whose certificates are trusted; empty: the system's
    std::string certificate; // our own with its chain, when servers ask for one; empty: none
    std::string key;         // of our own; empty: it stands in the file of the certificate
};

// What all connections share. Made once, when the program starts; threads may use it at the same time.
class tls_context
{
public:
    // Throws std::runtime_error with the file and what is wrong with it.
    explicit tls_context(const tls_client_files& files);

private:
    friend class tls_session;
    struct deleter
    {
        void operator()(ssl_ctx_st* gone) const;
    };
    std::unique_ptr<ssl_ctx_st, deleter> context_;
};

// One connection. After each call, whatever stands in `outgoing` is for the server.
class tls_session
{
public:
    enum class state : std::uint8_t
    {
        handshaking,
        open,
        ended, // the server has said that nothing follows
        failed // `why` says what happened; `outgoing` may hold an alert that tells the server
    };

    // `name`: a host name or an address, which the server's certificate must be for. The handshake begins at once.
    tls_session(const tls_context& with, std::string name);

    state now() const { return state_; }
    const std::string& why() const { return why_; }
    // The caller removes what it has sent.
    std::string& outgoing() { return outgoing_; }

    void feed(std::string_view encrypted);
    // Plain text that has come; 0: no more until the next feed, or the session is over. A call for every feed, at
    // least, also notices the end.
    std::size_t read(char* at, std::size_t most);
    // Only while it is open; later it is ignored.
    void write(std::string_view plain);

private:
    struct deleter
    {
        void operator()(ssl_st* gone) const;
    };

    void expect_name();
    void shake_hands();
    void judge(int result);
    void fail(std::string why);
    std::string describe_failure() const;
    std::string describe_certificate() const;
    void collect();

    std::string name_;
    std::unique_ptr<ssl_st, deleter> ssl_;
    state state_ = state::handshaking;
    std::string why_;
    std::string outgoing_;
};

} // namespace headgate
