// The certificate files that a TLS client accepts, and its messages about other files.
#include "limiter/io/tls_context.hpp"
#include "tests/support/certificates.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <stdexcept>

using namespace headgate;
using namespace headgate::testing;

namespace {

std::string why_no_context(const tls_client_files& files)
{
    try {
        const tls_context made(files);
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return "";
}

} // namespace

TEST_CASE("TLS context: files that cannot be used are named, with the problem")
{
    authority ca, other;
    const auto one = ca.issue("DNS:a"), two = other.issue("DNS:b");
    const auto in_folder = [&](const char* name, const char* text) {
        const auto path = (ca.folder() / name).string();
        std::ofstream(path) << text;
        return path;
    };
    const auto empty = in_folder("empty", ""), text = in_folder("text", "not PEM\n");
    const auto locked = in_folder("locked", "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
                                            "DEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n"
                                            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
                                            "-----END EC PRIVATE KEY-----\n");
    const struct
    {
        tls_client_files files;
        std::string why;
    } rows[] = {
        {{"/none.pem", {}, {}}, "the CA file /none.pem cannot be read: No such file or directory"},
        {{ca.folder(), {}, {}}, "the CA file " + ca.folder().string() + " cannot be read: Is a directory"},
        {{empty, {}, {}}, "the CA file " + empty + " cannot be read: it is empty"},
        {{text, {}, {}}, "the CA file " + text + " has no usable PEM certificates: "},
        {{ca.ca(), "/none.pem", one.key}, "the certificate /none.pem cannot be read: No such file or directory"},
        {{ca.ca(), text, one.key}, "the certificate " + text + " is not a usable PEM certificate: "},
        {{ca.ca(), one.certificate, text}, "the key " + text + " is not a usable PEM key"},
        {{ca.ca(), one.certificate, locked}, "the key " + locked + " is not a usable PEM key"},
        {{ca.ca(), one.certificate, two.key}, "the key " + two.key + " is not the key of the certificate "},
        {{ca.ca(), {}, one.key}, "the key " + one.key + " has no certificate"},
    };
    for (const auto& r : rows) {
        const auto why = why_no_context(r.files);
        CHECK_MESSAGE(why.find(r.why) == 0, "result: " << why << "\nexpected: " << r.why);
    }
    CHECK(why_no_context({ca.ca(), one.certificate, one.key}).empty());
}
