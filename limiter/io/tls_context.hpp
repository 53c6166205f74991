// What TLS clients share: the CA certificates they trust and the certificate they present. The server's certificate is
// always verified, its chain here and its name in tls_stream.hpp; no option turns that off.
#pragma once

#include "limiter/io/asio.hpp"

#include <boost/asio/ssl/context.hpp>

#include <string>

namespace headgate {

struct tls_client_files // PEM
{
    std::string ca;          // trusted CA certificates; empty: the system's
    std::string certificate; // the client's own certificate with its chain; empty: none
    std::string key;         // the client's private key; empty: it is in the certificate's file
};

// Made once at start-up. Threads may share it.
class tls_context
{
public:
    // Throws std::runtime_error with the name of the file and the problem.
    explicit tls_context(const tls_client_files& files);

    // For streams, which only count a reference.
    asio::ssl::context& get() const { return context_; }

private:
    mutable asio::ssl::context context_;
};

} // namespace headgate
