// The types of single values. A scalar<T> says how to read, show and document a T; scalar_type does the rest.
#pragma once

#include "config/choices.hpp"
#include "config/type.hpp"
#include "config/values.hpp"

#include <string>

namespace headgate::config {

template <class T>
struct scalar;

#define HEADGATE_SCALAR(T)                                                                                             \
    template <>                                                                                                        \
    struct scalar<T>                                                                                                   \
    {                                                                                                                  \
        static parsed<T> parse(const std::string& text, const about& a);                                               \
        static json dump(const T& value, const about& a);                                                              \
        static json schema(const about& a);                                                                            \
        static std::string words(const about& a);                                                                      \
        static std::string bounds(const about& a);                                                                     \
    }
HEADGATE_SCALAR(bool);
HEADGATE_SCALAR(std::uint64_t);
HEADGATE_SCALAR(std::string);
HEADGATE_SCALAR(secret);
HEADGATE_SCALAR(duration);
HEADGATE_SCALAR(byte_size);
HEADGATE_SCALAR(network);
HEADGATE_SCALAR(host_port);
HEADGATE_SCALAR(limit_value);
HEADGATE_SCALAR(outcome_match);
HEADGATE_SCALAR(redis_url);
HEADGATE_SCALAR(delay_value);
#undef HEADGATE_SCALAR

// Enums: one array of names beside each, in the order of the enumerators (config/choices.hpp).
template <class T>
concept named_enum = requires
{
    names_of(T{});
};

parsed<std::size_t> parse_choice(const std::string& text, const std::string_view* names, std::size_t count);
std::string choice_words(const std::string_view* names, std::size_t count);

template <named_enum T>
struct scalar<T>
{
    static constexpr auto names = names_of(T{});

    static parsed<T> parse(const std::string& text, const about&)
    {
        const auto found = parse_choice(text, names.data(), names.size());
        return {static_cast<T>(found.value), found.complaint};
    }
    static json dump(const T& value, const about&) { return std::string(names[static_cast<std::size_t>(value)]); }
    static json schema(const about&)
    {
        json out;
        for (const auto& name : names)
            out["enum"].push_back(std::string(name));
        return out;
    }
    static std::string words(const about&) { return choice_words(names.data(), names.size()); }
    static std::string bounds(const about&) { return {}; }
};

template <class T>
class scalar_type : public type
{
public:
    void load(loading& l, const node& n, const std::string& path, const about& a, void* field) const override
    {
        if (!n.is(node_kind::scalar))
            return l.wrong_kind(n, path, words(a));
        const auto text = a.is_secret ? l.secret_text(n, path) : l.text(n, path);
        if (!text)
            return;
        auto got = scalar<T>::parse(*text, a);
        if (got)
            *static_cast<T*>(field) = std::move(got.value);
        else if (a.is_secret)
            l.error(n, path, "the value (not shown) will not do: " + got.complaint);
        else
            l.wrong(n, path, got.complaint);
    }
    json dump(const dumping& d, const std::string& path, const about& a, const void* field) const override
    {
        if (d.at && d.at->is_from_environment(path))
            return "***";
        return scalar<T>::dump(*static_cast<const T*>(field), a);
    }
    json schema(const about& a) const override { return scalar<T>::schema(a); }
    std::string words(const about& a) const override { return a.what ? a.what : scalar<T>::words(a); }
    std::string bounds(const about& a) const override { return scalar<T>::bounds(a); }
};

} // namespace headgate::config
