#include "limiter/io/tls_stream.hpp"

#include <boost/asio/ssl/error.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace headgate {

namespace {

// Asio keeps OpenSSL's error code in an int.
unsigned long openssl_code(error_code error) { return static_cast<unsigned int>(error.value()); }

std::string words_of(unsigned long code)
{
    const char* const words = code ? ERR_reason_error_string(code) : nullptr;
    return words ? words : "no reason is known";
}

bool is_alert(unsigned long code)
{
    return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) >= SSL_AD_REASON_OFFSET;
}

bool is_distrust(long verdict)
{
    return verdict == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY || verdict == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
           verdict == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN || verdict == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
           verdict == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE || verdict == X509_V_ERR_CERT_SIGNATURE_FAILURE;
}

// Describes an alert that the server sent.
std::string describe_alert(unsigned long code)
{
    const auto words = words_of(code);
    switch (ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET) {
    case SSL_AD_CERTIFICATE_REQUIRED:
        return "the server requires a client certificate: " + words;
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_DECRYPT_ERROR: // a signature that does not verify
    case SSL_AD_UNKNOWN_CA:
        return "the server does not accept our certificate: " + words;
    default:
        return "the server refused the TLS connection: " + words;
    }
}

std::string describe_certificate(long verdict, const std::string& name)
{
    const std::string words = X509_verify_cert_error_string(verdict);
    if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH)
        return "the server's certificate is not for " + name + ": " + words;
    if (is_distrust(verdict))
        return "the server's certificate is not signed by a CA that we trust: " + words;
    return "the server's certificate is not accepted: " + words;
}

} // namespace

bool expect_name(tls_stream& stream, std::string name)
{
    auto* const ssl = stream.native_handle();
    auto* const expected = SSL_get0_param(ssl);
    const bool is_address = X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str()) == 1;
    if (is_address)
        return true;         // RFC 6066 §3: an address is not sent as the server's name
    if (name.ends_with('.')) // certificates have names without the trailing dot
        name.pop_back();
    X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    // For an empty name OpenSSL would skip the check.
    const bool is_set = !name.empty() && X509_VERIFY_PARAM_set1_host(expected, name.data(), name.size()) == 1 &&
                        SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) == 1;
    ERR_clear_error();
    return is_set;
}

bool is_tls_error(error_code error) { return error.category() == asio::error::get_ssl_category(); }

std::string describe_handshake_error(tls_stream& stream, const std::string& name, error_code error)
{
    if (error == asio::error::eof)
        return "the server ended the TLS handshake";
    if (error == asio::ssl::error::stream_truncated)
        return "the server closed the connection in the TLS handshake";
    if (!is_tls_error(error))
        return error.message();
    if (const long verdict = SSL_get_verify_result(stream.native_handle()); verdict != X509_V_OK)
        return describe_certificate(verdict, name);
    const auto code = openssl_code(error);
    if (is_alert(code))
        return describe_alert(code);
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER)
        return "the server does not speak TLS: " + words_of(code);
    return "the TLS handshake failed: " + words_of(code);
}

std::string describe_tls_error(error_code error)
{
    const auto code = openssl_code(error);
    return is_alert(code) ? describe_alert(code) : "the TLS connection broke: " + words_of(code);
}

} // namespace headgate
