// Redis Cluster's 16384 hash slots: which one a key is in, which node serves it, and what MOVED and ASK say. No I/O.
#pragma once

#include "limiter/redis/client/reply.hpp"
#include "limiter/redis/client/server_address.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace headgate::limiter::redis {

inline constexpr std::size_t slot_count = 16384;

// Of a key with {...} in it, what is between the first such pair alone counts.
std::uint16_t slot_of(std::string_view key);

struct redirection
{
    enum class kind : std::uint8_t
    {
        moved, // from now on
        ask    // only for this command, after ASKING
    };
    kind what = kind::moved;
    std::uint16_t slot = 0;
    server_address to;
};

// "MOVED 3999 127.0.0.1:6381", as it came, with or without the leading '-'; what follows does not matter. A node that
// does not know its host leaves it out: it is the host of the node that answered.
std::optional<redirection> parse_redirection(std::string_view error, std::string_view answering_host);

class slot_map
{
public:
    // Strict: nothing when it is not a reply to CLUSTER SLOTS. A node without a known host is left out.
    static std::optional<slot_map> read(const reply& said, std::string_view answering_host);

    // Null: no node is known. Valid until the map is changed.
    const server_address* master_of(std::uint16_t slot) const;
    std::optional<std::size_t> master_number(std::uint16_t slot) const; // in masters()
    // A MOVED is true until the next one; the others do not change the map.
    void apply(const redirection& said);

    // Each once, in no order; also those that serve nothing any more.
    const std::vector<server_address>& masters() const { return masters_; }
    std::size_t covered() const; // slots with a known master

private:
    using index = std::uint16_t; // of masters_, from 1; 0: none
    bool read_range(const reply& range, std::string_view answering_host);
    index index_of(const server_address& node);

    std::vector<server_address> masters_;
    std::array<index, slot_count> by_slot_{};
};

} // namespace headgate::limiter::redis
