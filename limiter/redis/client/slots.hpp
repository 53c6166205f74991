// Redis Cluster's 16384 hash slots: the slot of a key, the node that serves it, and redirections (MOVED, ASK). No I/O.
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

// Returns the slot of a key. If it contains {...}, only the text inside the first such pair counts.
std::uint16_t slot_of(std::string_view key);

struct redirection
{
    enum class kind : std::uint8_t
    {
        moved, // for this and later commands
        ask    // only for this command, after ASKING
    };
    kind what = kind::moved;
    std::uint16_t slot = 0;
    server_address to;
};

// Parses an error such as "MOVED 3999 127.0.0.1:6381", with or without the leading '-'; text after it is ignored. When
// the host is missing, because the node does not know its own, it is the host of the node that answered.
std::optional<redirection> parse_redirection(std::string_view error, std::string_view answering_host);

class slot_map
{
public:
    // Reads a reply to CLUSTER SLOTS. Returns nothing when it is malformed. Nodes without a known host are left out.
    static std::optional<slot_map> read(const reply& from, std::string_view answering_host);

    // Returns the master of a slot; nullptr when none is known. Valid until the map is changed.
    const server_address* master_of(std::uint16_t slot) const;
    std::optional<std::size_t> master_number(std::uint16_t slot) const; // in masters()
    // Applies a MOVED; other redirections do not change the map.
    void apply(const redirection& redirected);

    // Returns each master once, in no order; also those that no longer serve a slot.
    const std::vector<server_address>& masters() const { return masters_; }
    std::size_t covered() const; // the number of slots with a known master

private:
    using index = std::uint16_t; // of masters_, from 1; 0: none
    bool read_range(const reply& range, std::string_view answering_host);
    index index_of(const server_address& node);

    std::vector<server_address> masters_;
    std::array<index, slot_count> by_slot_{};
};

} // namespace headgate::limiter::redis
