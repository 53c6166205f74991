// Reads a JSON Web Key Set (RFC 7517). Keys that are not for us are passed over, as the RFC wants: another use, another
// kind, an algorithm the configuration does not allow. Keys that are for us and cannot be right are problems.
#pragma once

#include "gateway/identity/signature.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace headgate::identity {

struct key_set
{
    std::vector<verification_key> keys;
    std::vector<std::string> problems; // `name: what is wrong; what would be right`
};

// `name` is what problems call the text: the file's path.
key_set read_jwks(std::string_view text, const std::string& name, const std::vector<jwt_algorithm>& algorithms);

} // namespace headgate::identity
