#include "gateway/log/rare_warnings.hpp"

#include "gateway/http/errors.hpp"

#include <spdlog/spdlog.h>

namespace headgate {

namespace {

constexpr std::size_t longest_detail = 64;

rare_warnings& of_process()
{
    static rare_warnings all;
    return all;
}

} // namespace

std::uint64_t rare_warnings::note(std::string_view subject, time now)
{
    std::lock_guard guard(lock_);
    const auto known = subjects_.find(subject);
    if (known == subjects_.end()) {
        subjects_.emplace(subject, state{now});
        return 1;
    }
    auto& [logged, since] = known->second;
    ++since;
    if (now - logged < period)
        return 0;
    logged = now;
    return std::exchange(since, 0);
}

void warn_rarely(std::string_view subject, std::string_view detail)
{
    const auto events = of_process().note(subject, std::chrono::steady_clock::now());
    if (events == 0)
        return;
    http::byte_buffer text;
    text.append(subject);
    if (!detail.empty()) {
        text.append(": `");
        http::append_json_escaped(text, detail.substr(0, longest_detail));
        text.append('`');
    }
    if (events > 1)
        text.append(" (", http::decimal{events}, " times since the last such line)");
    spdlog::warn("{}", text.view());
}

} // namespace headgate
