// The client's side of TLS, without sockets, against OpenSSL's own server in memory.
#include "limiter/io/tls_client.hpp"
#include "tests/support/certificates.hpp"

#include <doctest/doctest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <fstream>
#include <stdexcept>

using namespace headgate;
using namespace headgate::testing;
using session_state = tls_session::state;

namespace {

class memory_server
{
public:
    memory_server(const authority::files& own, int newest)
        : context_(SSL_CTX_new(TLS_server_method()), SSL_CTX_free), ssl_(nullptr, SSL_free)
    {
        REQUIRE(SSL_CTX_use_certificate_chain_file(context_.get(), own.certificate.c_str()) == 1);
        REQUIRE(SSL_CTX_use_PrivateKey_file(context_.get(), own.key.c_str(), SSL_FILETYPE_PEM) == 1);
        SSL_CTX_set_security_level(context_.get(), 0); // old versions too
        SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
        SSL_CTX_set_max_proto_version(context_.get(), newest);
        ssl_.reset(SSL_new(context_.get()));
        SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        SSL_set_accept_state(ssl_.get());
    }

    // Takes what the client has to say and returns what the server says to it.
    std::string answer(tls_session& client)
    {
        auto& from = client.outgoing();
        if (!from.empty())
            BIO_write(SSL_get_rbio(ssl_.get()), from.data(), static_cast<int>(from.size()));
        from.clear();
        char bytes[4096];
        std::size_t n = 0;
        while (SSL_read_ex(ssl_.get(), bytes, sizeof bytes, &n) == 1)
            heard.append(bytes, n);
        ERR_clear_error();
        return said();
    }
    std::string said()
    {
        std::string all(BIO_ctrl_pending(SSL_get_wbio(ssl_.get())), '\0');
        if (!all.empty())
            BIO_read(SSL_get_wbio(ssl_.get()), all.data(), static_cast<int>(all.size()));
        return all;
    }
    std::string say(std::string_view text)
    {
        std::size_t n = 0;
        REQUIRE(SSL_write_ex(ssl_.get(), text.data(), text.size(), &n) == 1);
        return said();
    }
    std::string end()
    {
        SSL_shutdown(ssl_.get());
        return said();
    }
    std::string change_keys()
    {
        REQUIRE(SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED) == 1);
        REQUIRE(SSL_do_handshake(ssl_.get()) == 1);
        return said();
    }

    std::string heard;

private:
    std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
    std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
};

std::string read_all(tls_session& client)
{
    std::string all;
    char bytes[100];
    while (const auto n = client.read(bytes, sizeof bytes))
        all.append(bytes, n);
    return all;
}

void feed_slowly(tls_session& client, const std::string& bytes, std::string& plain)
{
    for (const char& c : bytes) {
        client.feed({&c, 1});
        plain += read_all(client);
    }
}

void shake_hands(tls_session& client, memory_server& server)
{
    for (int i = 0; i < 10 && (client.now() == session_state::handshaking || !client.outgoing().empty()); ++i)
        client.feed(server.answer(client));
    REQUIRE_MESSAGE(client.now() == session_state::open, client.why());
}

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

TEST_CASE("TLS session: bytes may come one at a time, in either version")
{
    authority ca;
    const tls_context context({ca.ca(), {}, {}});
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        CAPTURE(version);
        memory_server server(ca.issue("DNS:redis.example"), version);
        tls_session client(context, "redis.example");
        std::string plain;
        for (int i = 0; i < 4; ++i)
            feed_slowly(client, server.answer(client), plain);
        REQUIRE_MESSAGE(client.now() == session_state::open, client.why());
        const std::string large(100'000, 'x');
        client.write("hello " + large);
        feed_slowly(client, server.answer(client), plain);
        CHECK(server.heard == "hello " + large);
        CHECK(plain.empty());
        feed_slowly(client, server.say(large), plain);
        CHECK(plain == large);
        CHECK(client.now() == session_state::open);
    }
}

TEST_CASE("TLS session: what came before the end is read, and nothing is said after it")
{
    authority ca;
    const tls_context context({ca.ca(), {}, {}});
    memory_server server(ca.issue("DNS:redis.example"), TLS1_3_VERSION);
    tls_session client(context, "redis.example");
    shake_hands(client, server);
    const auto last = server.say("last words");
    client.feed(last + server.end());
    CHECK(read_all(client) == "last words");
    CHECK(client.now() == session_state::ended);
    client.write("too late");
    CHECK(client.outgoing().empty());
}

TEST_CASE("TLS session: a server that changes keys is answered")
{
    authority ca;
    const tls_context context({ca.ca(), {}, {}});
    memory_server server(ca.issue("DNS:redis.example"), TLS1_3_VERSION);
    tls_session client(context, "redis.example");
    shake_hands(client, server);
    client.feed(server.change_keys());
    CHECK(read_all(client).empty());
    client.write("with new keys");
    client.feed(server.answer(client));
    CHECK(server.heard == "with new keys");
    client.feed(server.say("both ways"));
    CHECK(read_all(client) == "both ways");
}

TEST_CASE("TLS session: a byte that was changed on the way ends it")
{
    authority ca;
    const tls_context context({ca.ca(), {}, {}});
    memory_server server(ca.issue("DNS:redis.example"), TLS1_3_VERSION);
    tls_session client(context, "redis.example");
    shake_hands(client, server);
    auto bytes = server.say("+OK\r\n");
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    client.feed(bytes);
    CHECK(read_all(client).empty());
    CHECK(client.now() == session_state::failed);
    CHECK_MESSAGE(client.why().find("the TLS connection broke: ") == 0, client.why());
    CHECK(!client.outgoing().empty()); // the alert
}

TEST_CASE("TLS session: old versions, plain text and names that are none fail in words")
{
    authority ca;
    const tls_context context({ca.ca(), {}, {}});
    memory_server old(ca.issue("DNS:redis.example"), TLS1_1_VERSION);
    tls_session modern(context, "redis.example");
    modern.feed(old.answer(modern));
    CHECK(modern.now() == session_state::failed);
    CHECK_MESSAGE(modern.why().find("the server refused the TLS connection: ") == 0, modern.why());

    tls_session misled(context, "redis.example");
    misled.feed("-ERR unknown command\r\n");
    CHECK(misled.now() == session_state::failed);
    CHECK_MESSAGE(misled.why().find("the server does not speak TLS: ") == 0, misled.why());

    for (const std::string& name : {std::string(), std::string("."), std::string("redis\0.example", 14)}) {
        tls_session nameless(context, name);
        CHECK(nameless.now() == session_state::failed);
        CHECK(nameless.outgoing().empty()); // nobody is spoken to who could not be verified
    }
}

TEST_CASE("TLS context: files that cannot be used are named, with what is wrong")
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
        {{text, {}, {}}, "the CA file " + text + " holds no PEM certificates that can be used: "},
        {{ca.ca(), "/none.pem", one.key}, "the certificate /none.pem cannot be read: No such file or directory"},
        {{ca.ca(), text, one.key}, "the certificate " + text + " is no PEM certificate that can be used: "},
        {{ca.ca(), one.certificate, text}, "the key " + text + " is no PEM key that can be used"},
        {{ca.ca(), one.certificate, locked}, "the key " + locked + " is no PEM key that can be used"},
        {{ca.ca(), one.certificate, two.key}, "the key " + two.key + " is not the key of the certificate "},
        {{ca.ca(), {}, one.key}, "the key " + one.key + " has no certificate"},
    };
    for (const auto& r : rows) {
        const auto why = why_no_context(r.files);
        CHECK_MESSAGE(why.find(r.why) == 0, "said: " << why << "\nnot: " << r.why);
    }
    CHECK(why_no_context({ca.ca(), one.certificate, one.key}).empty());
}
