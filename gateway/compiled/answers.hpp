// The refusals and quota fields of a route, compiled: the body split into pieces, the fields that never change as text,
// networks as a set.
#pragma once

#include "config/model.hpp"
#include "gateway/answers/body_template.hpp"
#include "gateway/http/ip_address.hpp"

#include <optional>
#include <string>

namespace headgate {

struct compiled_answers
{
    explicit compiled_answers(const config::answers_config& from);

    const config::answers_config* config;
    std::optional<body_template> body; // none: problem+json
    std::string refusal_fields;        // whole lines: Content-Type, Cache-Control, the operator's own
    http::address_set explain_networks;
};

} // namespace headgate
