#include "gateway/load_configuration.hpp"

#include "config/load.hpp"
#include "config/yaml_tree.hpp"
#include "gateway/compiled/config.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <tuple>

namespace headgate {

namespace {

void complain(const config::gateway_config& config, std::vector<config::problem>& problems, const std::string& path,
              const std::string& what)
{
    if (config.places)
        problems.push_back(config.places->make(config::severity::error, path, what));
}

// Checks what only limiter/redis and the TLS code can check: certificates that cannot be read, limits that Redis cannot
// count.
void check_shared_stores(const config::gateway_config& config, std::vector<config::problem>& problems)
{
    for (const auto& name : shared_store_names(config)) {
        try {
            make_tls(config.stores.at(name));
        } catch (const std::exception& error) {
            complain(config, problems, "stores." + name + ".tls", error.what());
        }
    }
}

// A snapshot is renamed into its place, which would replace a directory entry of any kind; a FIFO would block.
void check_snapshots(const config::gateway_config& config, std::vector<config::problem>& problems)
{
    using std::filesystem::file_type;
    for (const auto& [name, store] : config.stores) {
        if (!store.snapshot)
            continue;
        std::error_code error;
        const auto type = std::filesystem::status(store.snapshot->path, error).type();
        const bool is_unknown = type == file_type::none || type == file_type::unknown; // loading it will say why
        if (!is_unknown && type != file_type::regular && type != file_type::not_found)
            complain(config, problems, "stores." + name + ".snapshot.path",
                     store.snapshot->path + " is not a regular file; name one, or a path at which there is nothing");
    }
}

// Relative paths started at the working directory once. A file that is still there is not left behind silently: a
// snapshot that was not found would set all counters to zero.
void check_moved_files(const config::gateway_config& config, std::vector<config::problem>& problems)
{
    namespace fs = std::filesystem;
    if (!config.places)
        return;
    std::error_code ignored;
    const auto here = fs::current_path(ignored);
    for (const auto& path : config.places->relative_paths()) {
        const auto there = (here / path.folder).lexically_normal();
        const auto before = (here / path.written).lexically_normal(), now = (there / path.written).lexically_normal();
        if (!fs::exists(before, ignored) || fs::exists(now, ignored))
            continue;
        // A value from the environment is not shown, only where it leads from.
        const bool is_hidden = config.places->is_from_environment(path.key);
        complain(config, problems, path.key,
                 "a relative path starts at the folder of the file that contains it, and the file is not there; there "
                 "is one in the working directory: move " +
                     (is_hidden ? "it from " + here.string() : before.string()) + " to " +
                     (is_hidden ? there : now).string() + ", or write the whole path");
    }
}

config::load_result load_standard_input()
{
    const std::string name = "<stdin>";
    std::string text;
    char piece[65536];
    while (std::cin.read(piece, sizeof piece) || std::cin.gcount() > 0) {
        text.append(piece, static_cast<std::size_t>(std::cin.gcount()));
        if (text.size() > config::max_file_bytes)
            return {{}, {{config::severity::error, name, 0, 0, {}, "this is larger than 16 MiB, the maximum"}}};
    }
    return config::load_text(text, name);
}

} // namespace

config::load_result load_configuration(const std::string& file, const credentials* running)
{
    auto loaded = file == "-" ? load_standard_input() : config::load_file(file);
    if (!loaded.config)
        return loaded;
    const auto missing = config::not_built_yet(*loaded.config);
    loaded.problems.insert(loaded.problems.end(), missing.begin(), missing.end());
    load_credentials(*loaded.config, loaded.problems, running);
    check_shared_stores(*loaded.config, loaded.problems);
    check_snapshots(*loaded.config, loaded.problems);
    check_moved_files(*loaded.config, loaded.problems);
    std::stable_sort(loaded.problems.begin(), loaded.problems.end(), [&](const auto& a, const auto& b) {
        const auto& places = *loaded.config->places;
        return std::tuple(places.order_of(a.file), a.line, a.column) <
               std::tuple(places.order_of(b.file), b.line, b.column);
    });
    return loaded;
}

std::map<std::string, config::byte_size> memory_of_stores(const config::gateway_config& config)
{
    store_map stores;
    compile_config(config, stores, {}, {});
    std::map<std::string, config::byte_size> out;
    for (const auto& [name, store] : stores)
        out.emplace(name, config::byte_size{store->bound_bytes()});
    return out;
}

} // namespace headgate
