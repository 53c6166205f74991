// Reads a JSON Web Key Set (RFC 7517). As the RFC requires, keys that headgate does not use are skipped: another use,
// another type, or an algorithm that the configuration does not allow. Keys that it would use and that are invalid are
// problems.
#pragma once

#include "gateway/identity/signature.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace headgate::identity {

struct key_set
{
    std::vector<verification_key> keys;
    std::vector<std::string> problems; // `name: the error; the fix`
};

// `name` is the name of the text in problems: the path of the file.
key_set read_jwks(std::string_view text, const std::string& name, const std::vector<jwt_algorithm>& algorithms);

} // namespace headgate::identity
