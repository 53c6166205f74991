// The command line: run, check, version. Exit status 0, 1 (the configuration is bad), 2 (the command line is).
#include "config/summary.hpp"
#include "gateway/app.hpp"
#include "gateway/load_configuration.hpp"

#include <CLI/CLI.hpp>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iostream>
#include <sys/resource.h>

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
    try {
        std::cout << config::summarise(*config, memory_of_stores(*config));
    } catch (const std::exception& error) {
        std::cerr << file << ": " << error.what() << '\n';
        return bad_configuration;
    }
    return ok;
}

// Raises the limit of open files to what the system allows: a forwarded request needs two, and shells and service
// managers often begin with 1,024.
void raise_descriptor_limit()
{
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run(const std::string& file)
{
    if (file == "-") {
        std::cerr
            << "a reload reads the configuration again, which standard input does not allow; write it to a file\n";
        return bad_usage;
    }
    auto config = load(file);
    if (!config)
        return bad_configuration;
    raise_descriptor_limit();
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

// Returns what is wrong with the first word of the command line; empty when it is a command or an option.
std::string complain_about(const std::string& word)
{
    const std::vector<std::string> commands = {"run", "check", "version"}, options = {"-h", "--help", "--version"};
    const auto is_in = [&](const std::vector<std::string>& list) {
        return std::find(list.begin(), list.end(), word) != list.end();
    };
    if (is_in(commands) || is_in(options))
        return {};
    if (word.starts_with("-"))
        return "`" + word + "` is not an option" + config::did_you_mean(word, options);
    if (word.ends_with(".yaml") || word.ends_with(".yml"))
        return "`" + word + "` is not a command; did you mean `headgate run " + word + "`?";
    const auto hint = config::did_you_mean(word, commands);
    return "`" + word + "` is not a command" + (hint.empty() ? "; the commands are run, check and version" : hint);
}

} // namespace

int main(int argc, char** argv)
{
    if (const auto complaint = argc > 1 ? complain_about(argv[1]) : std::string(); !complaint.empty()) {
        std::cerr << complaint << "\nRun with --help for more information.\n";
        return bad_usage;
    }
    CLI::App cli{"headgate: an HTTP gateway that limits the rate of requests.\n\n"
                 "  headgate check gateway.yaml     check a configuration and print what it means\n"
                 "  headgate run gateway.yaml       start\n\n"
                 "Signals: HUP reads the configuration again, USR1 reopens the access log, TERM finishes what is in\n"
                 "flight and ends.\n"
                 "Exit status: 0, 1 when the configuration is bad, 2 when the command line is."};
    cli.require_subcommand(1);
    cli.set_version_flag("--version", "headgate " HEADGATE_VERSION, "Print the version");
    std::string file;
    auto* run_command = cli.add_subcommand("run", "Start the gateway on a configuration");
    run_command->add_option("FILE", file, "the configuration, e.g. gateway.yaml")->required();
    auto* check_command =
        cli.add_subcommand("check", "Check a configuration and print what it means; does not start the gateway");
    check_command->add_option("FILE", file, "the configuration, e.g. gateway.yaml; - for standard input")->required();
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
