#include "gateway/compiled/credentials.hpp"

#include "config/identity.hpp"

#include <algorithm>
#include <iterator>

namespace headgate {

namespace {

using config::severity;

// Collects the problems of one entry of the configuration.
struct reporter
{
    const config::gateway_config& config;
    std::vector<config::problem>& out;
    std::string path;

    void add(severity level, const std::string& what)
    {
        out.push_back(config.places ? config.places->make(level, path, what)
                                    : config::problem{level, {}, 0, 0, path, what});
    }
    void add_errors(const std::vector<std::string>& all)
    {
        for (const auto& what : all)
            add(severity::error, what);
    }
};

template <class Entries>
std::size_t number_of(const Entries& entries, const std::string& name)
{
    return static_cast<std::size_t>(std::distance(entries.begin(), entries.find(name)));
}

using table_pointer = std::shared_ptr<const identity::api_key_table>;

table_pointer find_table(const credentials* running, const std::string& name)
{
    if (running) {
        for (const auto& table : running->tables) {
            if (table.name == name)
                return table.keys;
        }
    }
    return nullptr;
}

// A program that replaces a file in place empties it first. A reload in that moment keeps the keys.
table_pointer keep_unless_empty(table_pointer loaded, const table_pointer& before, const std::string& file,
                                reporter& report)
{
    if (!before || before->size() == 0) {
        report.add(severity::warning, file + " has 0 bytes, so no key is known; if that is meant, write a line with a "
                                             "comment");
        return loaded;
    }
    report.add(severity::warning, file + " has 0 bytes; the keys that were read before (" +
                                      std::to_string(before->size()) +
                                      ") stay in use. To remove them all, leave a line with a comment");
    return before;
}

// Returns whether plans are read from this table.
bool gives_plans(const config::gateway_config& config, const std::string& table)
{
    if (!config.plans)
        return false;
    const auto sources = config::sources_of(config, config.plans->sources, "plan");
    return std::any_of(sources.begin(), sources.end(), [&](const config::identity_source& source) {
        return source.kind == config::source_kind::api_key && source.verified_by == table;
    });
}

// A plan that does not exist would silently be the default plan.
void check_plans(const identity::api_key_table& table, const std::string& name, const std::string& file,
                 reporter& report)
{
    constexpr std::size_t most = 100; // bounds the output for a file that is wrong on every line
    const auto names = report.config.plans ? report.config.plans->names : std::vector<std::string>{};
    const auto unknown = table.plans_not_in(names);
    if (unknown.empty())
        return;
    const auto what = [&](const identity::api_key_table::named_plan& row) {
        return file + ":" + std::to_string(row.line) + ": the plan `" + row.plan + "` is not in `plans.names`" +
               config::did_you_mean(row.plan, names);
    };
    if (!gives_plans(report.config, name)) {
        report.add(severity::warning, what(unknown.front()) + "; `plans.sources` does not read this table, so its " +
                                          "plans have no effect");
        return;
    }
    for (std::size_t i = 0; i < std::min(most, unknown.size()); ++i)
        report.add(severity::error, what(unknown[i]));
    if (unknown.size() > most)
        report.add(severity::error, file + ": and " + std::to_string(unknown.size() - most) + " more lines like these");
}

} // namespace

credentials load_credentials(const config::gateway_config& config, std::vector<config::problem>& problems,
                             const credentials* running)
{
    credentials out;
    for (const auto& [name, jwt] : config.jwt) {
        auto loaded = identity::token_verifier::load(jwt);
        reporter{config, problems, "jwt." + name}.add_errors(loaded.problems);
        if (loaded.verifier)
            out.providers.push_back({jwt.header, jwt.invalid, std::move(*loaded.verifier)});
    }
    for (const auto& [name, from] : config.api_keys) {
        reporter report{config, problems, "api_keys." + name + ".file"};
        auto loaded = identity::api_key_table::load(from.file);
        report.add_errors(loaded.problems);
        if (!loaded.table)
            continue;
        auto table = std::make_shared<const identity::api_key_table>(std::move(*loaded.table));
        if (loaded.has_no_bytes)
            table = keep_unless_empty(std::move(table), find_table(running, name), from.file, report);
        check_plans(*table, name, from.file, report);
        out.tables.push_back({name, std::move(table)});
    }
    return out;
}

std::size_t provider_number(const config::gateway_config& config, const std::string& name)
{
    return name.empty() ? 0 : number_of(config.jwt, name);
}

std::size_t table_number(const config::gateway_config& config, const std::string& name)
{
    return number_of(config.api_keys, name);
}

} // namespace headgate
