#include "limiter/io/tls_context.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace headgate {

namespace {

std::string words_of(unsigned long error)
{
    const char* const words = error ? ERR_reason_error_string(error) : nullptr;
    return words ? words : "no reason is known";
}

// Throws with the first error that OpenSSL has queued: later ones are its consequences.
[[noreturn]] void fail(const std::string& what)
{
    const auto cause = ERR_peek_error();
    const auto words = words_of(cause);
    ERR_clear_error();
    throw std::runtime_error(what + ": " + words);
}

// OpenSSL's message for a missing file is hard to read, so files are tried first.
void require_readable(const std::string& path, const std::string& what)
{
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
    if (!file || std::fgetc(file.get()) == EOF) {
        const bool is_empty = file && std::feof(file.get());
        const auto words = is_empty ? "it is empty" : std::generic_category().message(errno);
        throw std::runtime_error(what + " " + path + " cannot be read: " + words);
    }
}

// Without this callback OpenSSL would ask for a password on the terminal.
int no_password(char*, int, int, void*) { return -1; }

void load_trusted(SSL_CTX* context, const std::string& ca)
{
    if (ca.empty()) {
        if (SSL_CTX_set_default_verify_paths(context) != 1)
            fail("the system's CA certificates cannot be read");
        return;
    }
    require_readable(ca, "the CA file");
    if (SSL_CTX_load_verify_file(context, ca.c_str()) != 1)
        fail("the CA file " + ca + " has no usable PEM certificates");
}

void load_own(SSL_CTX* context, const std::string& certificate, const std::string& key)
{
    require_readable(certificate, "the certificate");
    if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1)
        fail("the certificate " + certificate + " is not a usable PEM certificate");
    require_readable(key, "the key");
    if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
        const auto cause = ERR_peek_error();
        if (ERR_GET_LIB(cause) == ERR_LIB_X509 && ERR_GET_REASON(cause) == X509_R_KEY_VALUES_MISMATCH)
            fail("the key " + key + " is not the key of the certificate " + certificate);
        fail("the key " + key + " is not a usable PEM key; keys with a password are not supported");
    }
    if (SSL_CTX_check_private_key(context) != 1)
        fail("the key " + key + " is not the key of the certificate " + certificate);
}

} // namespace

tls_context::tls_context(const tls_client_files& files) : context_(asio::ssl::context::tls_client)
{
    auto* const context = context_.native_handle();
    ERR_clear_error();
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1)
        fail("TLS cannot be used");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_default_passwd_cb(context, no_password);
    load_trusted(context, files.ca);
    if (files.certificate.empty() && !files.key.empty())
        throw std::runtime_error("the key " + files.key + " has no certificate");
    if (!files.certificate.empty())
        load_own(context, files.certificate, files.key.empty() ? files.certificate : files.key);
    ERR_clear_error();
}

} // namespace headgate
