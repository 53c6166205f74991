// The names of config/ip_address.hpp in this namespace.
#pragma once

#include "config/ip_address.hpp"

namespace headgate::http {

using config::address_set;
using config::address_text;
using config::address_texts;
using config::format_address;
using config::ip_address;
using config::parse_hop;
using config::parse_ipv4;
using config::parse_ipv6;

} // namespace headgate::http
