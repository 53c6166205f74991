#include "bench/load/options.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace load {

namespace {

[[noreturn]] void usage(std::string_view wrong)
{
    std::fprintf(
        stderr,
        "bench_load: %.*s\n"
        "usage: bench_load --port P [--connections N] [--idle N] [--seconds S] [--warm S] [--rate R] [--most N]\n"
        "                  [--path /P] [--paths N] [--method M] [--body BYTES] [--headers N]\n"
        "                  [--keys none|one|uniform:N|sequence:N] [--spent SHARE] [--close] [--hold]\n"
        "                  [--watch PID]...\n",
        static_cast<int>(wrong.size()), wrong.data());
    std::exit(2);
}

key_choice::law read_law(std::string_view name)
{
    using enum key_choice::law;
    if (name == "none")
        return none;
    if (name == "one")
        return one;
    if (name == "uniform")
        return uniform;
    if (name == "sequence")
        return sequence;
    usage("no such distribution of keys");
}

void read_keys(key_choice& keys, std::string_view text)
{
    const auto colon = text.find(':');
    keys.drawn = read_law(text.substr(0, colon));
    if (colon != text.npos)
        keys.count = std::strtoull(text.data() + colon + 1, nullptr, 10);
    if (keys.count == 0)
        usage("no keys to draw from");
}

} // namespace

options read_options(int count, char** arguments)
{
    options chosen;
    for (int i = 1; i < count; ++i) {
        const std::string_view name = arguments[i];
        if (name == "--close") {
            chosen.close = true;
            continue;
        }
        if (name == "--hold") {
            chosen.hold = true;
            continue;
        }
        if (++i == count)
            usage("a value is missing");
        const char* value = arguments[i];
        const auto number = std::strtod(value, nullptr);
        const auto whole = std::strtoull(value, nullptr, 10);
        if (name == "--port")
            chosen.port = static_cast<std::uint16_t>(whole);
        else if (name == "--connections")
            chosen.connections = whole;
        else if (name == "--idle")
            chosen.idle = whole;
        else if (name == "--seconds")
            chosen.seconds = number;
        else if (name == "--warm")
            chosen.warm = number;
        else if (name == "--rate")
            chosen.rate = number;
        else if (name == "--most")
            chosen.most = whole;
        else if (name == "--path")
            chosen.path = value;
        else if (name == "--paths")
            chosen.paths = whole;
        else if (name == "--method")
            chosen.method = value;
        else if (name == "--body")
            chosen.body = whole;
        else if (name == "--headers")
            chosen.headers = whole;
        else if (name == "--keys")
            read_keys(chosen.keys, value);
        else if (name == "--spent")
            chosen.keys.spent_share = number;
        else if (name == "--watch")
            chosen.watched.push_back(static_cast<int>(whole));
        else
            usage("no such option");
    }
    if (chosen.port == 0)
        usage("--port is missing");
    return chosen;
}

} // namespace load
