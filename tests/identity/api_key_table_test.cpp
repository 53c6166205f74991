#include "gateway/identity/api_key_table.hpp"
#include "tests/identity/support/signer.hpp"

#include <doctest/doctest.h>
#include <openssl/evp.h>

using namespace headgate::identity;
using namespace headgate::identity::testing;

namespace {

std::string sha256_hex(std::string_view text)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    REQUIRE(EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr) == 1);
    std::string hex;
    for (unsigned i = 0; i < size; ++i) {
        hex += "0123456789abcdef"[digest[i] >> 4];
        hex += "0123456789abcdef"[digest[i] & 15];
    }
    return hex;
}

api_key_table must_read(std::string_view text)
{
    auto loaded = api_key_table::from_text(text, "keys");
    INFO(joined(loaded.problems));
    REQUIRE(loaded.table);
    return std::move(*loaded.table);
}

// Returns "user/plan" of the owner of a key, "-" when no user has it.
std::string owner(const api_key_table& table, std::string_view key)
{
    const auto* row = table.find(key);
    return row ? row->user + "/" + row->plan : "-";
}

std::string problems(std::string_view text) { return joined(api_key_table::from_text(text, "keys").problems); }

} // namespace

TEST_CASE("API keys: a key belongs to the user on the line of its digest")
{
    // The digest of `abc` as FIPS 180-4 prints it.
    const auto table =
        must_read("# our customers\n"
                  "\n"
                  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad alice pro\n"
                  "  \t\n"
                  "  sha256:" +
                  sha256_hex("key-2") + "\tbob\r\n  # another\n" + sha256_hex("key-3") + "   carol\tfree  ");
    CHECK(table.size() == 3);
    CHECK(owner(table, "abc") == "alice/pro");
    CHECK(owner(table, "key-2") == "bob/");
    CHECK(owner(table, "key-3") == "carol/free");
    CHECK(owner(table, "key-4") == "-");
    CHECK(owner(must_read(""), "abc") == "-");
}

TEST_CASE("K6: keys are case-sensitive, and a digest is not a key")
{
    const auto digest = sha256_hex("Key");
    auto upper = digest;
    for (auto& c : upper)
        c = static_cast<char>(c >= 'a' ? c - 32 : c);
    const auto table = must_read(upper + " alice");
    CHECK(owner(table, "Key") == "alice/");
    CHECK(owner(table, "key") == "-");
    CHECK(owner(table, " Key") == "-");
    CHECK(owner(table, "Key ") == "-");
    CHECK(owner(table, digest) == "-");
    CHECK(owner(table, upper) == "-");
}

TEST_CASE("K6: a key that is empty, over 256 bytes or not visible ASCII is not found, even if its digest is listed")
{
    const std::string longest(256, 'k'), too_long(257, 'k'), with_nul("k\0k", 3);
    const auto table = must_read(sha256_hex("") + " a\n" + sha256_hex(longest) + " b\n" + sha256_hex(too_long) +
                                 " c\n" + sha256_hex("k k") + " d\n" + sha256_hex("k\x7f") + " e\n" +
                                 sha256_hex("k\xc3\xa9") + " f\n" + sha256_hex(with_nul) + " g\n");
    CHECK(table.size() == 7);
    CHECK(owner(table, longest) == "b/");
    for (const std::string& key : {std::string(), too_long, std::string("k k"), std::string("k\x7f"),
                                   std::string("k\xc3\xa9"), with_nul, std::string("k\n")})
        CHECK(owner(table, key) == "-");
}

TEST_CASE("API keys: every wrong line is reported with the error and the fix, and no key is shown")
{
    const auto hash = sha256_hex("a");
    const auto text = "hunter2 alice pro\n" + hash.substr(1) + " alice\n" + hash + "\n" + hash.substr(0, 63) +
                      "g alice\n" + "# fine\n" + hash + " alice pro\n" + hash + " bob\n" + sha256_hex("b") +
                      " bob pro extra\n" + sha256_hex("c") + " " + std::string(257, 'u') + "\n" + sha256_hex("d") +
                      " al\xc3\xa9\n" + sha256_hex("e") + " eve #comment\n" + "md5:" + hash + " alice\n";
    const std::string digest = "the line does not begin with a SHA-256 in hex; it is 64 hex digits, as from "
                               "`printf %s KEY | sha256sum`\n";
    const std::string user = "this is not a valid user name; a user name has 1 to 256 visible ASCII characters\n";
    const auto expected =
        "keys:1: " + digest + "keys:2: " + digest +
        "keys:3: there is no user; a line is: hash user plan\n"
        "keys:4: " +
        digest +
        "keys:7: the same key is on line 6; a key belongs to one user\n"
        "keys:8: there are more than three words; a line is: hash user plan (a comment has a line of its own)\n"
        "keys:9: " +
        user + "keys:10: " + user +
        "keys:11: this is not a valid plan name; a name has letters, digits, `_`, `-` and `.`, begins with a letter or "
        "digit, "
        "and has at most 64 characters (a comment has a line of its own)\n"
        "keys:12: " +
        digest;
    CHECK(problems(text) + "\n" == expected);
    CHECK_FALSE(api_key_table::from_text(text, "keys").table);
}

TEST_CASE("API keys: a user name may have 1 to 256 characters")
{
    const std::string longest(256, '~');
    const auto table = must_read(sha256_hex("a") + " !\n" + sha256_hex("b") + " " + longest + "\n");
    CHECK(owner(table, "a") == "!/");
    CHECK(owner(table, "b") == longest + "/");
}

TEST_CASE("API keys: of many wrong lines a hundred are reported and the rest counted")
{
    std::string text;
    for (int i = 0; i < 5000; ++i)
        text += "nonsense\n";
    const auto loaded = api_key_table::from_text(text, "keys");
    REQUIRE(loaded.problems.size() == 101);
    CHECK(loaded.problems.back() == "keys: and 4900 more lines like these");
}

TEST_CASE("API keys: a file is read from disk; a missing file is a problem")
{
    const temporary_file file(sha256_hex("a") + " alice pro\nx\n");
    CHECK(joined(api_key_table::load(file.path()).problems).starts_with(file.path() + ":2: "));
    const temporary_file good(sha256_hex("a") + " alice pro\n");
    const auto loaded = api_key_table::load(good.path());
    REQUIRE(loaded.table);
    CHECK(owner(*loaded.table, "a") == "alice/pro");
    CHECK(joined(api_key_table::load("/nowhere/keys").problems) == "/nowhere/keys: there is no such file");
}

TEST_CASE("API keys: a hundred thousand lines are read quickly")
{
    std::string text;
    for (int i = 0; i < 100'000; ++i)
        text += sha256_hex("key-" + std::to_string(i)) + " user-" + std::to_string(i) + " pro\n";
    const auto begin = std::chrono::steady_clock::now();
    const auto table = must_read(text);
    const auto took = std::chrono::steady_clock::now() - begin;
    MESSAGE("read in " << std::chrono::duration_cast<std::chrono::milliseconds>(took).count() << " ms");
    CHECK(took < std::chrono::seconds(10)); // leaves time for a sanitizer on a busy machine
    CHECK(table.size() == 100'000);
    CHECK(owner(table, "key-0") == "user-0/pro");
    CHECK(owner(table, "key-99999") == "user-99999/pro");
    CHECK(owner(table, "key-100000") == "-");
}
