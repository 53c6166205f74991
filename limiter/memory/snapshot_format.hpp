// The bytes of a snapshot. Little-endian, in this order:
//   magic "HGSNAP" and a 2-byte version | written_at | groups: name, variant, rules | entries: group, level, flags,
//   key, words | an end mark | checksum of everything before it
// Pure: snapshot.cpp reads and writes the file.
#pragma once

#include "limiter/core/rule.hpp"
#include "limiter/siphash.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace headgate::limiter::snapshot_format {

static_assert(std::endian::native == std::endian::little, "snapshots have the byte order of the machine");

inline constexpr std::string_view magic{"HGSNAP\x02\x00", 8}; // the last two bytes are the version
inline constexpr std::uint32_t end_of_entries = 0xffffffff;
inline constexpr std::size_t checksum_block = 1 << 16;

// A running checksum over blocks: the hash of each block takes the sum of the blocks before it as its secret.
class checksum
{
public:
    void add(std::string_view bytes)
    {
        while (!bytes.empty()) {
            const auto n = std::min(bytes.size(), checksum_block - pending_.size());
            pending_.append(bytes.substr(0, n));
            bytes.remove_prefix(n);
            if (pending_.size() == checksum_block)
                fold();
        }
    }
    std::uint64_t finish()
    {
        fold();
        return sum_;
    }

private:
    void fold()
    {
        sum_ = siphash({sum_, 0x68656164676174u}, pending_.size(), pending_);
        pending_.clear();
    }
    std::uint64_t sum_ = 0;
    std::string pending_;
};

template <class T>
void put(std::string& out, T value)
{
    static_assert(std::is_integral_v<T>);
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
inline void put_text(std::string& out, std::string_view text)
{
    put(out, static_cast<std::uint32_t>(text.size()));
    out.append(text);
}

// Reads what `put` wrote. After the first read past the end every value is zero and `failed` is set.
class reader
{
public:
    explicit reader(std::string_view bytes) : rest_(bytes) {}

    template <class T>
    T get()
    {
        T value{};
        const auto bytes = take(sizeof value);
        if (!failed_)
            std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }
    std::string_view text() { return take(get<std::uint32_t>()); }
    std::string_view take(std::size_t n)
    {
        if (n > rest_.size()) {
            failed_ = true;
            return {};
        }
        const auto bytes = rest_.substr(0, n);
        rest_.remove_prefix(n);
        return bytes;
    }
    bool failed() const { return failed_; }

private:
    std::string_view rest_;
    bool failed_ = false;
};

inline void put_rule(std::string& out, const rule& r)
{
    put_text(out, r.name);
    put(out, static_cast<std::uint8_t>(r.kind));
    put(out, r.count);
    put(out, static_cast<std::int64_t>(r.period.count()));
    put(out, r.capacity);
    put(out, r.initial);
    put(out, static_cast<std::uint8_t>(r.align));
    put(out, static_cast<std::uint8_t>(r.calendar));
    put(out, static_cast<std::uint8_t>(r.shadow));
}

// Reads a rule. Returns false when its numbers are not valid for a rule: arithmetic on them could divide by zero or
// overflow.
inline bool get_rule(reader& in, rule& r)
{
    r.name = in.text();
    const auto kind = in.get<std::uint8_t>();
    r.kind = static_cast<algorithm>(kind);
    r.count = in.get<std::uint64_t>();
    r.period = microseconds{in.get<std::int64_t>()};
    r.capacity = in.get<std::uint64_t>();
    r.initial = in.get<std::uint64_t>();
    const auto align = in.get<std::uint8_t>();
    r.align = static_cast<window_align>(align);
    const auto calendar = in.get<std::uint8_t>();
    r.calendar = static_cast<calendar_unit>(calendar);
    r.shadow = in.get<std::uint8_t>() != 0;
    return !in.failed() && kind <= static_cast<std::uint8_t>(algorithm::concurrency) && align <= 1 && calendar <= 3 &&
           r.count > 0 && r.count <= max_count && r.period.count() > 0 && r.period.count() < (std::int64_t{1} << 50) &&
           r.capacity > 0 && r.capacity <= max_count && r.initial <= r.capacity &&
           (r.kind != algorithm::sliding_log || r.count <= max_log_records);
}

} // namespace headgate::limiter::snapshot_format
