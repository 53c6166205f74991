// Certificates for a test: an authority in a temporary folder, which is deleted after the test.
#pragma once

#include <openssl/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

namespace headgate::testing {

class authority
{
public:
    struct files
    {
        std::string certificate, key;
    };

    authority();
    ~authority();
    authority(const authority&) = delete;
    authority& operator=(const authority&) = delete;

    // Returns the authority's own certificate.
    std::string ca() const { return folder_ / "ca.pem"; }
    const std::filesystem::path& folder() const { return folder_; }
    // Issues a certificate. `names` as OpenSSL writes them: "DNS:localhost,IP:127.0.0.1". A negative `lasts` makes an
    // expired one.
    files issue(const std::string& names, std::chrono::seconds lasts = std::chrono::hours{1});

private:
    std::filesystem::path folder_;
    std::shared_ptr<EVP_PKEY> key_;
    std::shared_ptr<X509> certificate_;
    int issued_ = 0;
};

} // namespace headgate::testing
