#include "gateway/identity/jwks.hpp"

#include "gateway/identity/base64url.hpp"
#include "gateway/identity/key_material.hpp"
#include "gateway/identity/strict_json.hpp"

#include <algorithm>
#include <utility>

namespace headgate::identity {

namespace {

using nlohmann::json;

// Returns the text of a member; empty when it is absent or not a string.
std::string text_of(const json& object, std::string_view name)
{
    const auto* member = find_member(object, name);
    return member && member->is_string() ? member->get<std::string>() : std::string();
}

std::optional<key_family> find_family(const json& jwk)
{
    const auto kty = text_of(jwk, "kty"), crv = text_of(jwk, "crv");
    if (kty == "oct")
        return key_family::hmac;
    if (kty == "RSA")
        return key_family::rsa;
    if (kty == "EC" && crv == "P-256")
        return key_family::p256;
    if (kty == "EC" && crv == "P-384")
        return key_family::p384;
    if (kty == "EC" && crv == "P-521")
        return key_family::p521;
    if (kty == "OKP" && crv == "Ed25519")
        return key_family::ed25519;
    return std::nullopt;
}

std::optional<jwt_algorithm> find_algorithm(std::string_view name)
{
    const auto names = config::names_of(jwt_algorithm{});
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
        return std::nullopt;
    return static_cast<jwt_algorithm>(found - names.begin());
}

bool is_for_verifying(const json& jwk)
{
    if (find_member(jwk, "use") && text_of(jwk, "use") != "sig")
        return false;
    const auto* operations = find_member(jwk, "key_ops");
    return !operations || std::find(operations->begin(), operations->end(), json("verify")) != operations->end();
}

// Returns the algorithms a key may be used with: allowed ones of its family, and only its own `alg` if it has one.
std::vector<jwt_algorithm> usable(const json& jwk, key_family family, const std::vector<jwt_algorithm>& allowed)
{
    const bool named = find_member(jwk, "alg");
    const auto only = find_algorithm(text_of(jwk, "alg"));
    std::vector<jwt_algorithm> result;
    for (const auto algorithm : allowed)
        if (family_of(algorithm) == family && (!named || algorithm == only))
            result.push_back(algorithm);
    return result;
}

made_key make_key(const json& jwk, key_family family, const std::vector<jwt_algorithm>& algorithms)
{
    const auto number = [&](std::string_view name) { return decode_base64url(text_of(jwk, name)); };
    const auto both = [&](std::string_view first, std::string_view second, auto make) -> made_key {
        const auto a = number(first), b = number(second);
        if (a && b && !a->empty() && !b->empty())
            return make(*a, *b);
        return {{}, "`" + std::string(first) + "` and `" + std::string(second) + "` must be base64url without padding"};
    };
    const auto one = [&](std::string_view name, auto make) -> made_key {
        const auto value = number(name);
        if (value && !value->empty())
            return make(*value);
        return {{}, "`" + std::string(name) + "` must be base64url without padding"};
    };
    if (family == key_family::hmac)
        return one("k", [&](const std::string& k) { return make_hmac_key(k, algorithms); });
    if (family == key_family::rsa)
        return both("n", "e", make_rsa_key);
    if (family == key_family::ed25519)
        return one("x", make_ed25519_key);
    return both("x", "y", [&](const std::string& x, const std::string& y) { return make_ec_key(family, x, y); });
}

// Returns the place of a key in problems: `keys[2] (kid "a")`.
std::string place_of(std::size_t index, const json& jwk)
{
    const auto* kid = find_member(jwk, "kid");
    return "keys[" + std::to_string(index) + "]" + (kid && kid->is_string() ? " (kid " + kid->dump() + ")" : "");
}

void read_key(const json& jwk, const std::string& place, const std::vector<jwt_algorithm>& allowed, key_set& set)
{
    if (!jwk.is_object() || text_of(jwk, "kty").empty()) {
        set.problems.push_back(place + ": this is not a key; a key is an object with at least `kty`");
        return;
    }
    const auto* kid = find_member(jwk, "kid");
    if (kid && !kid->is_string()) {
        set.problems.push_back(place + ": `kid` must be a string");
        return;
    }
    const auto family = find_family(jwk);
    if (!family || !is_for_verifying(jwk))
        return;
    const auto algorithms = usable(jwk, *family, allowed);
    if (algorithms.empty())
        return;
    auto made = make_key(jwk, *family, algorithms);
    if (!made.key) {
        set.problems.push_back(place + ": " + made.complaint);
        return;
    }
    if (kid)
        made.key->id = kid->get<std::string>();
    if (find_member(jwk, "alg"))
        made.key->only = algorithms.front();
    set.keys.push_back(std::move(*made.key));
}

} // namespace

key_set read_jwks(std::string_view text, const std::string& name, const std::vector<jwt_algorithm>& algorithms)
{
    key_set set;
    const auto parsed = parse_strict_json(text);
    if (!parsed) {
        const auto line =
            1 + std::count(text.begin(),
                           text.begin() + static_cast<std::ptrdiff_t>(std::min(parsed.offset, text.size())), '\n');
        set.problems.push_back(name + (parsed.offset ? ":" + std::to_string(line) : "") + ": " + parsed.complaint +
                               "; a key set is {\"keys\": [ ... ]}");
        return set;
    }
    const auto* keys = find_member(parsed.value, "keys");
    if (!keys || !keys->is_array()) {
        set.problems.push_back(name + ": there is no list of keys; a key set is {\"keys\": [ ... ]}");
        return set;
    }
    for (std::size_t i = 0; i < keys->size(); ++i)
        read_key((*keys)[i], name + ": " + place_of(i, (*keys)[i]), algorithms, set);
    return set;
}

} // namespace headgate::identity
