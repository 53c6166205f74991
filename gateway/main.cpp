// The command line: run, check, version. Exit status 0, 1 (the configuration is bad), 2 (the command line is).
#include "config/summary.hpp"
#include "gateway/app.hpp"
#include "gateway/load_configuration.hpp"

#include <CLI/CLI.hpp>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <iostream>

namespace {

using namespace headgate;

constexpr int ok = 0, bad_configuration = 1, bad_usage = 2;

// Loads a configuration and prints every problem. Returns nothing when a problem keeps the gateway from starting.
std::optional<config::gateway_config> load(const std::string& file)
{
    auto loaded = load_configuration(file);
    std::size_t errors = 0;
    for (const auto& problem : loaded.problems) {
        std::cerr << to_string(problem) << '\n';
        errors += problem.level == config::severity::error;
    }
    if (!loaded.config || errors > 0) {
        std::cerr << file << ": " << errors << (errors == 1 ? " error" : " errors") << "; nothing was started\n";
        return std::nullopt;
    }
    return std::move(loaded.config);
}

int check(const std::string& file)
{
    const auto config = load(file);
    if (!config)
        return bad_configuration;
    std::cout << config::summarise(*config);
    return ok;
}

int run(const std::string& file)
{
    auto config = load(file);
    if (!config)
        return bad_configuration;
    // Operational messages go to stderr; stdout belongs to the access log.
    spdlog::set_default_logger(spdlog::stderr_color_mt("headgate"));
    spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
    try {
        app gateway(std::move(*config));
        return gateway.run(file);
    } catch (const std::exception& error) { // a port that is taken, a server name without an address
        std::cerr << file << ": " << error.what() << '\n';
        return bad_configuration;
    }
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App cli{"headgate: an HTTP gateway that limits the rate of requests.\n\n"
                 "  headgate check gateway.yaml     check a configuration and print what it means\n"
                 "  headgate run gateway.yaml       start\n\n"
                 "Signals: HUP reads the configuration again, USR1 reopens the access log, TERM finishes what is in\n"
                 "flight and ends.\n"
                 "Exit status: 0, 1 when the configuration is bad, 2 when the command line is."};
    cli.require_subcommand(1);
    std::string file;
    auto* run_command = cli.add_subcommand("run", "Start the gateway on a configuration");
    run_command->add_option("FILE", file, "the configuration, e.g. gateway.yaml")->required();
    auto* check_command =
        cli.add_subcommand("check", "Check a configuration and print what it means; does not start the gateway");
    check_command->add_option("FILE", file, "the configuration, e.g. gateway.yaml")->required();
    auto* version_command = cli.add_subcommand("version", "Print the version");

    try {
        cli.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return cli.exit(error, std::cout, std::cerr) == 0 ? ok : bad_usage;
    }
    if (version_command->parsed()) {
        std::cout << "headgate " HEADGATE_VERSION "\n";
        return ok;
    }
    return run_command->parsed() ? run(file) : check(file);
}
