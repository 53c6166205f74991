#include "tests/support/certificates.hpp"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <stdexcept>
#include <stdlib.h>

namespace headgate::testing {

namespace {

void must(bool done, const char* what)
{
    if (!done)
        throw std::runtime_error(std::string("certificates: ") + what);
}

std::shared_ptr<EVP_PKEY> new_key()
{
    const std::shared_ptr<EVP_PKEY> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    must(key != nullptr, "no key");
    return key;
}

void extend(X509* certificate, X509* issuer, int what, const std::string& value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    auto* const extension = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
    must(extension && X509_add_ext(certificate, extension, -1) == 1, value.c_str());
    X509_EXTENSION_free(extension);
}

// Makes a certificate that is not signed yet, without an issuer.
std::shared_ptr<X509> new_certificate(EVP_PKEY* key, const std::string& name, long serial, std::chrono::seconds lasts)
{
    const std::shared_ptr<X509> made(X509_new(), X509_free);
    must(made != nullptr, "no certificate");
    constexpr long day = 24 * 60 * 60;
    X509_set_version(made.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), std::min<long>(0, lasts.count()) - day);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), lasts.count());
    X509_set_pubkey(made.get(), key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    return made;
}

template <class Write>
void save(const std::string& path, Write write)
{
    const std::unique_ptr<BIO, int (*)(BIO*)> file(BIO_new_file(path.c_str(), "w"), BIO_free);
    must(file && write(file.get()) == 1, path.c_str());
}

void save_certificate(const std::string& path, X509* which)
{
    save(path, [&](BIO* to) { return PEM_write_bio_X509(to, which); });
}

std::filesystem::path new_folder()
{
    auto name = (std::filesystem::temp_directory_path() / "headgate-ca-XXXXXX").string();
    must(mkdtemp(name.data()) != nullptr, "no folder");
    return name;
}

} // namespace

authority::authority() : folder_(new_folder()), key_(new_key())
{
    // All authorities have the same name: only the signature distinguishes them.
    certificate_ = new_certificate(key_.get(), "headgate test CA", 1, std::chrono::hours{1});
    X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
    extend(certificate_.get(), certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
    extend(certificate_.get(), certificate_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
    must(X509_sign(certificate_.get(), key_.get(), EVP_sha256()) > 0, "not signed");
    save_certificate(ca(), certificate_.get());
}

authority::~authority()
{
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

authority::files authority::issue(const std::string& names, std::chrono::seconds lasts)
{
    const auto key = new_key();
    const auto made = new_certificate(key.get(), "headgate test", 100 + ++issued_, lasts);
    X509_set_issuer_name(made.get(), X509_get_subject_name(certificate_.get()));
    extend(made.get(), certificate_.get(), NID_subject_alt_name, names);
    must(X509_sign(made.get(), key_.get(), EVP_sha256()) > 0, "not signed");
    const auto stem = (folder_ / std::to_string(issued_)).string();
    files written{stem + ".pem", stem + ".key"};
    save_certificate(written.certificate, made.get());
    save(written.key,
         [&](BIO* to) { return PEM_write_bio_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
    return written;
}

} // namespace headgate::testing
