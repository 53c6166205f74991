#include "gateway/identity/token_keys.hpp"

#include "config/environment.hpp"
#include "gateway/identity/key_material.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace headgate::identity {

namespace {

constexpr std::uintmax_t largest_file = 1024 * 1024;

std::string list_of(const std::vector<jwt_algorithm>& algorithms)
{
    std::string text;
    for (const auto algorithm : algorithms)
        text += (text.empty() ? "" : ", ") + std::string(config::name_of(algorithm));
    return text;
}

// Returns every algorithm that a key of this family can verify, for the fix in a problem.
std::string fitting(key_family family)
{
    std::vector<jwt_algorithm> algorithms;
    for (std::size_t i = 0; i < config::names_of(jwt_algorithm{}).size(); ++i)
        if (const auto algorithm = static_cast<jwt_algorithm>(i); family_of(algorithm) == family)
            algorithms.push_back(algorithm);
    return list_of(algorithms);
}

bool has_algorithm_for(const verification_key& key, const std::vector<jwt_algorithm>& algorithms)
{
    return std::any_of(algorithms.begin(), algorithms.end(), [&](auto algorithm) { return key.fits(algorithm); });
}

void add(made_key made, const std::string& place, const std::vector<jwt_algorithm>& algorithms, key_set& set)
{
    if (!made.key)
        set.problems.push_back(place + ": " + made.complaint);
    else if (!has_algorithm_for(*made.key, algorithms))
        set.problems.push_back(place + ": this is " + std::string(describe(made.key->family)) +
                               ", but `algorithms` has only " + list_of(algorithms) + "; " + fitting(made.key->family) +
                               " would go with it");
    else
        set.keys.push_back(std::move(*made.key));
}

void read_pem(const std::string& path, const std::vector<jwt_algorithm>& algorithms, key_set& set)
{
    const auto file = config::read_regular_file(path, largest_file);
    if (!file.complaint.empty())
        set.problems.push_back(path + ": " + file.complaint);
    else
        add(make_pem_key(file.text), path, algorithms, set);
}

void read_key_set(const std::string& path, const std::vector<jwt_algorithm>& algorithms, key_set& set)
{
    const auto file = config::read_regular_file(path, largest_file);
    if (!file.complaint.empty()) {
        set.problems.push_back(path + ": " + file.complaint);
        return;
    }
    auto read = read_jwks(file.text, path, algorithms);
    if (read.keys.empty() && read.problems.empty())
        set.problems.push_back(path + ": no key in it verifies " + list_of(algorithms) +
                               "; check each key's `kty`, `crv`, `alg`, `use` and `key_ops`");
    std::move(read.keys.begin(), read.keys.end(), std::back_inserter(set.keys));
    std::move(read.problems.begin(), read.problems.end(), std::back_inserter(set.problems));
}

void check_number(const std::string& path, key_set& set)
{
    for (const auto family : {key_family::hmac, key_family::rsa, key_family::p256, key_family::p384, key_family::p521,
                              key_family::ed25519}) {
        const auto number = static_cast<std::size_t>(
            std::count_if(set.keys.begin(), set.keys.end(), [&](const auto& key) { return key.family == family; }));
        if (number > most_keys_of_a_family)
            set.problems.push_back(path + ": there are " + std::to_string(number) + " keys of one kind; at most " +
                                   std::to_string(most_keys_of_a_family) +
                                   " may be tried on a token, so remove those no longer in use");
    }
}

} // namespace

key_set load_token_keys(const config::jwt_config& config)
{
    key_set set;
    if (config.algorithms.empty())
        set.problems.push_back("`algorithms` is empty; list at least one, such as RS256");
    if (config.secret.empty() && config.public_key.empty() && config.jwks.empty())
        set.problems.push_back("there is no key to verify a token; give `secret`, `public_key` or `jwks`");
    if (!set.problems.empty())
        return set;
    if (!config.secret.empty())
        add(make_hmac_key(config.secret.reveal(), config.algorithms), "secret", config.algorithms, set);
    if (!config.public_key.empty())
        read_pem(config.public_key, config.algorithms, set);
    if (!config.jwks.empty())
        read_key_set(config.jwks, config.algorithms, set);
    check_number(config.jwks, set);
    if (!set.problems.empty())
        set.keys.clear();
    return set;
}

} // namespace headgate::identity
