#include "limiter/io/tls_client.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace headgate {

namespace {

std::string words_of(unsigned long error)
{
    const char* const words = error ? ERR_reason_error_string(error) : nullptr;
    return words ? words : "no reason is known";
}

// The first error is the cause; those after it are its consequences.
[[noreturn]] void refuse(const std::string& what)
{
    const auto cause = ERR_peek_error();
    const auto words = words_of(cause);
    ERR_clear_error();
    throw std::runtime_error(what + ": " + words);
}

// OpenSSL's own words for a file that is not there are hard to read.
void must_be_readable(const std::string& path, const std::string& what)
{
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
    if (!file || std::fgetc(file.get()) == EOF) {
        const bool is_empty = file && std::feof(file.get());
        const auto words = is_empty ? "it is empty" : std::generic_category().message(errno);
        throw std::runtime_error(what + " " + path + " cannot be read: " + words);
    }
}

// Without it OpenSSL would ask for a password on the terminal.
int no_password(char*, int, int, void*) { return -1; }

void trust(SSL_CTX* context, const std::string& ca)
{
    if (ca.empty()) {
        if (SSL_CTX_set_default_verify_paths(context) != 1)
            refuse("the system's CA certificates cannot be read");
        return;
    }
    must_be_readable(ca, "the CA file");
    if (SSL_CTX_load_verify_file(context, ca.c_str()) != 1)
        refuse("the CA file " + ca + " holds no PEM certificates that can be used");
}

void present(SSL_CTX* context, const std::string& certificate, const std::string& key)
{
    must_be_readable(certificate, "the certificate");
    if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1)
        refuse("the certificate " + certificate + " is no PEM certificate that can be used");
    must_be_readable(key, "the key");
    if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
        const auto cause = ERR_peek_error();
        if (ERR_GET_LIB(cause) == ERR_LIB_X509 && ERR_GET_REASON(cause) == X509_R_KEY_VALUES_MISMATCH)
            refuse("the key " + key + " is not the key of the certificate " + certificate);
        refuse("the key " + key + " is no PEM key that can be used; one with a password cannot");
    }
    if (SSL_CTX_check_private_key(context) != 1)
        refuse("the key " + key + " is not the key of the certificate " + certificate);
}

bool is_distrust(long verdict)
{
    return verdict == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY || verdict == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
           verdict == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN || verdict == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
           verdict == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE || verdict == X509_V_ERR_CERT_SIGNATURE_FAILURE;
}

// An alert is the server's own word.
std::string describe_alert(int alert, const std::string& words)
{
    switch (alert) {
    case SSL_AD_CERTIFICATE_REQUIRED:
        return "the server wants a certificate of ours: " + words;
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_DECRYPT_ERROR: // a signature that does not fit
    case SSL_AD_UNKNOWN_CA:
        return "the server does not accept our certificate: " + words;
    default:
        return "the server refused the TLS connection: " + words;
    }
}

} // namespace

// ---- the context

void tls_context::deleter::operator()(ssl_ctx_st* gone) const { SSL_CTX_free(gone); }

tls_context::tls_context(const tls_client_files& files)
{
    ERR_clear_error();
    context_.reset(SSL_CTX_new(TLS_client_method()));
    if (!context_ || SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION) != 1)
        refuse("TLS cannot be used");
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_options(context_.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_default_passwd_cb(context_.get(), no_password);
    trust(context_.get(), files.ca);
    if (files.certificate.empty() && !files.key.empty())
        throw std::runtime_error("the key " + files.key + " has no certificate");
    if (!files.certificate.empty())
        present(context_.get(), files.certificate, files.key.empty() ? files.certificate : files.key);
    ERR_clear_error();
}

// ---- a session

void tls_session::deleter::operator()(ssl_st* gone) const { SSL_free(gone); }

tls_session::tls_session(const tls_context& with, std::string name)
    : name_(std::move(name)), ssl_(SSL_new(with.context_.get()))
{
    auto* const in = BIO_new(BIO_s_mem());
    auto* const out = BIO_new(BIO_s_mem());
    if (!ssl_ || !in || !out) {
        BIO_free(in);
        BIO_free(out);
        throw std::bad_alloc();
    }
    SSL_set_bio(ssl_.get(), in, out); // they are the session's from here on
    SSL_set_connect_state(ssl_.get());
    expect_name();
    if (state_ == state::handshaking)
        shake_hands();
}

// The name is checked as part of the chain, before the handshake ends. An address is not sent as the server's name.
void tls_session::expect_name()
{
    auto* const expected = SSL_get0_param(ssl_.get());
    if (X509_VERIFY_PARAM_set1_ip_asc(expected, name_.c_str()) == 1)
        return;
    ERR_clear_error();
    if (name_.ends_with('.')) // certificates are written without it
        name_.pop_back();
    X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    // An empty name would be no check at all.
    if (name_.empty() || X509_VERIFY_PARAM_set1_host(expected, name_.data(), name_.size()) != 1 ||
        SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name_.data()) != 1)
        fail("\"" + name_ + "\" is no name that the server's certificate could be for");
}

void tls_session::feed(std::string_view encrypted)
{
    while (!encrypted.empty()) {
        const auto some = std::min<std::size_t>(encrypted.size(), std::numeric_limits<int>::max());
        const int taken = BIO_write(SSL_get_rbio(ssl_.get()), encrypted.data(), static_cast<int>(some));
        if (taken <= 0)
            return fail("no memory for what the server sent");
        encrypted.remove_prefix(static_cast<std::size_t>(taken));
    }
    if (state_ == state::handshaking)
        shake_hands();
}

void tls_session::shake_hands()
{
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1)
        state_ = state::open;
    else
        judge(result);
    collect();
}

std::size_t tls_session::read(char* at, std::size_t most)
{
    if (state_ != state::open)
        return 0;
    ERR_clear_error();
    std::size_t got = 0;
    const int result = SSL_read_ex(ssl_.get(), at, most, &got);
    if (result != 1) {
        got = 0;
        judge(result);
    }
    collect();
    return got;
}

void tls_session::write(std::string_view plain)
{
    if (state_ != state::open || plain.empty())
        return;
    ERR_clear_error();
    std::size_t written = 0;
    // Memory takes it all: it is never left half done.
    if (SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &written) != 1 || written != plain.size())
        fail(describe_failure());
    collect();
}

// After a call that did not succeed: more bytes are needed, or it is over.
void tls_session::judge(int result)
{
    const int error = SSL_get_error(ssl_.get(), result);
    if (error == SSL_ERROR_WANT_READ)
        return;
    if (error == SSL_ERROR_ZERO_RETURN && state_ == state::open)
        state_ = state::ended;
    else if (error == SSL_ERROR_ZERO_RETURN)
        fail("the server ended the TLS handshake");
    else
        fail(describe_failure());
}

void tls_session::fail(std::string why)
{
    state_ = state::failed;
    why_ = std::move(why);
    ERR_clear_error();
}

std::string tls_session::describe_failure() const
{
    const auto error = ERR_peek_error();
    const int reason = ERR_GET_REASON(error);
    if (state_ == state::handshaking && SSL_get_verify_result(ssl_.get()) != X509_V_OK)
        return describe_certificate();
    if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET)
        return describe_alert(reason - SSL_AD_REASON_OFFSET, words_of(error));
    if (state_ == state::open)
        return "the TLS connection broke: " + words_of(error);
    if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason == SSL_R_WRONG_VERSION_NUMBER)
        return "the server does not speak TLS: " + words_of(error);
    return "the TLS handshake failed: " + words_of(error);
}

std::string tls_session::describe_certificate() const
{
    const long verdict = SSL_get_verify_result(ssl_.get());
    const std::string words = X509_verify_cert_error_string(verdict);
    if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH)
        return "the server's certificate is not for " + name_ + ": " + words;
    if (is_distrust(verdict))
        return "the server's certificate is not signed by a CA that we trust: " + words;
    return "the server's certificate is not accepted: " + words;
}

void tls_session::collect()
{
    auto* const out = SSL_get_wbio(ssl_.get());
    while (const auto pending = BIO_ctrl_pending(out)) {
        const auto had = outgoing_.size();
        outgoing_.resize(had + pending);
        std::size_t got = 0;
        BIO_read_ex(out, outgoing_.data() + had, pending, &got);
        outgoing_.resize(had + got);
        if (got == 0)
            return;
    }
}

} // namespace headgate
