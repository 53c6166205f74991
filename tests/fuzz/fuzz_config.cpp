// libFuzzer target: any bytes as a configuration. No file is touched: what is included is the input itself once more.
#include "config/load.hpp"
#include "config/summary.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace headgate::config;
    const std::string text(reinterpret_cast<const char*>(data), size);
    const environment env{
        .variable = [](const std::string& name) -> std::optional<std::string> {
            return name.size() < 8 ? std::optional<std::string>("v") : std::nullopt;
        },
        .read = [&](const std::filesystem::path& file, std::uintmax_t) -> file_text {
            return file.native().size() % 2 ? file_text{text, {}} : file_text{{}, "there is no such file"};
        }};
    const auto result = load_text(text, "fuzz.yaml", env);
    for (const auto& problem : result.problems)
        if (to_string(problem).empty() || problem.line < 0)
            std::abort();
    if (!result.config)
        return 0;
    (void)summarise(*result.config);
    (void)not_built_yet(*result.config);
    return 0;
}
