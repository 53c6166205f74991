// Names of keys: different pairs of group and principal have different names, and no byte from a client has a meaning
// for Redis.
#include "limiter/redis/client/error_class.hpp"
#include "limiter/redis/redis_key.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

using namespace headgate::limiter::redis;

namespace {

std::string key(std::string_view group, std::string_view principal, key_form form = key_form::plain_when_short)
{
    std::string out;
    append_key(out, group, principal, form);
    return out;
}

} // namespace

TEST_CASE("redis keys: safe bytes stay readable, other bytes are escaped, long principals are digested")
{
    CHECK(key("api", "user:42") == "hg:1:{api:user:42}");
    CHECK(key("api", "2001:db8::/64") == "hg:1:{api:2001:db8::/64}");
    CHECK(key("a:b", "c") == "hg:1:{a%3Ab:c}");
    CHECK(key("a", "b:c") == "hg:1:{a:b:c}");
    CHECK(key("a", "x}{y") == "hg:1:{a:x%7D%7By}");
    CHECK(key("a", std::string_view("\r\n\0*?[", 6)) == "hg:1:{a:%0D%0A%00%2A%3F%5B}");
    CHECK(key("a", "%41") != key("a", "A"));
    CHECK(key("a", "~0") == "hg:1:{a:%7E0}");
    // echo -n hello | sha256sum
    CHECK(key("a", "hello", key_form::always_digest) == "hg:1:{a:~2CF24DBA5FB0A30E26E83B2AC5B9E29E}");
    const std::string longest(max_plain_principal, 'x');
    CHECK(key("a", longest) == "hg:1:{a:" + longest + "}");
    CHECK(key("a", longest + 'x').size() == 8 + 33 + 1);
    CHECK(key("a", longest + 'x') != key("a", longest + 'y'));
    CHECK(key("a", std::string(1 << 20, '\xff')).size() == 8 + 33 + 1);
}

TEST_CASE("redis keys: a key's name is parsed, and foreign names are refused")
{
    const auto name = parse_key(key("a:b", "x}{y\n"));
    REQUIRE(name);
    CHECK(name->group == "a:b");
    CHECK(name->principal == "x}{y\n");
    CHECK_FALSE(name->digested);
    CHECK(parse_key(key("a", "x", key_form::always_digest))->digested);
    for (const char* other : {"", "hg:1:{a}", "hg:1:{a:b", "hg:2:{a:b}", "hg:1:{a:%4}", "hg:1:{a:%zz}", "now"})
        CHECK_FALSE(parse_key(other));
}

TEST_CASE("redis keys: different pairs of group and principal have different names")
{
    const bool holds = rc::check("different pairs, different keys", [] {
        // Few letters, many of them special: pairs are often nearly equal.
        const auto text = rc::gen::container<std::string>(rc::gen::element('a', ':', '{', '}', '%', '~', '4', '1'));
        const auto a = *rc::gen::pair(text, text), b = *rc::gen::pair(text, text);
        const auto ka = key(a.first, a.second), kb = key(b.first, b.second);
        RC_ASSERT((a == b) == (ka == kb));
        const auto name = parse_key(ka);
        RC_ASSERT(name.has_value());
        RC_ASSERT(name->digested || (name->group == a.first && name->principal == a.second));
        RC_ASSERT(ka.find_first_of("{") == 5u);
        RC_ASSERT(ka.find_first_of("}") == ka.size() - 1);
    });
    CHECK(holds);
}

TEST_CASE("redis errors: classified by the first word, whatever a script appends")
{
    CHECK(classify("NOSCRIPT No matching script. Please use EVAL.") == error_class::no_script);
    CHECK(classify("-READONLY You can't write against a read only replica. script: 5b, on @user_script:1.") ==
          error_class::read_only);
    CHECK(classify("OOM command not allowed when used memory > 'maxmemory'.") == error_class::out_of_memory);
    CHECK(classify("MOVED 3999 127.0.0.1:6381") == error_class::moved);
    CHECK(classify("NOAUTH Authentication required.") == error_class::unauthorized);
    CHECK(classify("WRONGPASS invalid username-password pair") == error_class::unauthorized);
    CHECK(classify("BUSY Redis is busy running a script.") == error_class::busy);
    CHECK(classify("LOADING") == error_class::loading);
    CHECK(classify("ERR unknown command") == error_class::general);
    CHECK(classify("ERRATIC") == error_class::other);
    CHECK(classify("") == error_class::other);
    CHECK(name_of(error_class::misconfigured) == "MISCONF");
}
