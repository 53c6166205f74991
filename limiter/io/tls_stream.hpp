// The client's side of one TLS connection: asio::ssl::stream over a socket, the check of the server's name, and error
// messages for the log.
#pragma once

#include "limiter/io/asio.hpp"

#include <boost/asio/ssl/stream.hpp>

#include <string>

namespace headgate {

using tls_stream = asio::ssl::stream<stream_socket&>;

// Makes the handshake fail unless the server's certificate is for `name`, a host name or an IP address. A host name is
// also sent to the server (SNI). Returns false when no certificate can be for that name. REQUIRES: called before the
// handshake.
bool expect_name(tls_stream& stream, std::string name);

// Returns whether TLS itself failed, rather than the connection beneath it.
bool is_tls_error(error_code error);

// Returns why the handshake failed.
std::string describe_handshake_error(tls_stream& stream, const std::string& name, error_code error);
// Returns why a connection failed after its handshake. REQUIRES: is_tls_error(error).
std::string describe_tls_error(error_code error);

} // namespace headgate
