// Writes the requests one after the other, each with a path and a key drawn as the options say. The draws are the same
// in every run.
#pragma once

#include "bench/load/options.hpp"

#include <cstdint>
#include <string>

namespace load {

class requests
{
public:
    explicit requests(const options& chosen) : chosen_(chosen)
    {
        fixed_ = " HTTP/1.1\r\nHost: bench.example\r\nUser-Agent: load\r\nAccept: */*\r\n";
        for (std::size_t i = 0; i < chosen.headers; ++i)
            fixed_ += "X-Header-" + std::to_string(i) + ": a value as long as they are\r\n";
        if (chosen.close)
            fixed_ += "Connection: close\r\n";
        if (chosen.body > 0)
            fixed_ += "Content-Type: text/plain\r\nContent-Length: " + std::to_string(chosen.body) + "\r\n";
        body_.assign(chosen.body, 'x');
    }

    void write_next(std::string& out)
    {
        out.assign(chosen_.method).append(1, ' ');
        if (chosen_.paths > 0)
            out.append("/r/").append(std::to_string(random() % chosen_.paths));
        out.append(chosen_.path).append(fixed_);
        write_key(out);
        out.append("\r\n").append(body_);
    }

private:
    void write_key(std::string& out)
    {
        if (chosen_.keys.drawn == key_choice::law::none)
            return;
        if (chosen_.keys.spent_share > 0 && fraction() < chosen_.keys.spent_share)
            out.append("X-API-Key: spent\r\n");
        else
            out.append("X-API-Key: key-").append(std::to_string(draw_key())).append("\r\n");
    }

    std::uint64_t draw_key()
    {
        const auto n = chosen_.keys.count;
        switch (chosen_.keys.drawn) {
        case key_choice::law::uniform:
            return random() % n;
        case key_choice::law::sequence:
            return turn_++ % n;
        default:
            return 0;
        }
    }

    // splitmix64
    std::uint64_t random()
    {
        auto z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    double fraction() { return static_cast<double>(random() >> 11) * 0x1p-53; }

    const options& chosen_;
    std::string fixed_, body_;
    std::uint64_t state_ = 1;
    std::uint64_t turn_ = 0;
};

} // namespace load
