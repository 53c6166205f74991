// The client's side of one TLS connection: asio::ssl::stream over a socket, the check of the server's name, and errors
// in words for the log.
#pragma once

#include "limiter/io/asio.hpp"

#include <boost/asio/ssl/stream.hpp>

#include <string>

namespace headgate {

using tls_stream = asio::ssl::stream<stream_socket&>;

// Makes the handshake fail unless the server's certificate is for `name`, a host name or an IP address. A host name is
// also sent to the server (SNI). Call it before the handshake. Returns false when no certificate could be for that
// name.
bool expect_name(tls_stream& stream, std::string name);

// Whether TLS itself failed, rather than the connection beneath it.
bool is_tls_error(error_code error);

// Says why the handshake failed.
std::string describe_handshake_error(tls_stream& stream, const std::string& name, error_code error);
// Says why a connection failed after its handshake. REQUIRES: is_tls_error(error).
std::string describe_tls_error(error_code error);

} // namespace headgate
