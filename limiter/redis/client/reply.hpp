// Replies of Redis, read by hiredis's reader into reusable memory: no allocation per reply once it is warm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;

namespace headgate::limiter::redis {

class reply_reader;

// One reply, or one item of an array. Valid until the reader reads the next reply.
class reply
{
public:
    enum class kind : std::uint8_t
    {
        nil,
        status,
        error,
        integer,
        text,
        array
    };

    reply(const reply_reader& of, std::size_t at) : of_(&of), at_(at) {}

    kind what() const;
    bool is(kind k) const { return what() == k; }
    bool is_error() const { return is(kind::error); }
    long long number() const;                 // of an integer; else 0
    std::string_view text() const;            // of a status, an error or a text; else empty
    std::size_t size() const;                 // of an array; else 0
    reply operator[](std::size_t item) const; // linear time
    // Visits all items in their order.
    template <class Visit>
    void for_each(Visit&& visit) const;

private:
    const reply_reader* of_;
    std::size_t at_;
};

class reply_reader
{
public:
    // Larger replies are refused.
    static constexpr std::size_t most_bytes = std::size_t{4} << 20;

    reply_reader();
    ~reply_reader();
    reply_reader(const reply_reader&) = delete;
    reply_reader& operator=(const reply_reader&) = delete;

    void feed(std::string_view bytes);
    // Returns whether a whole reply is there; it is in `current`.
    bool next();
    reply current() const { return {*this, 0}; }
    // Returns whether something came that is not Redis's protocol, or too large. Nothing after it can be trusted.
    bool is_broken() const { return broken_; }
    std::string_view why_broken() const { return why_; }

private:
    friend class reply;
    friend struct reply_builder;
    static constexpr std::size_t no_parent = static_cast<std::size_t>(-1);

    struct node
    {
        reply::kind kind = reply::kind::nil;
        long long number = 0;           // of an array: the number of items
        std::size_t from = 0, size = 0; // in bytes_
        std::size_t parent = no_parent;
    };

    void break_off(std::string_view why);

    redisReader* reader_;
    std::vector<node> nodes_; // an array before its items
    std::string bytes_;
    std::size_t unread_ = 0; // fed since the last whole reply
    bool whole_ = false;     // nodes_ holds a reply that was returned
    bool broken_ = false;
    std::string why_;
};

template <class Visit>
void reply::for_each(Visit&& visit) const
{
    auto left = size();
    for (auto i = at_ + 1; left > 0; ++i) {
        if (of_->nodes_[i].parent != at_)
            continue;
        visit(reply{*of_, i});
        --left;
    }
}

} // namespace headgate::limiter::redis
