// Reads a configuration and the files it includes, runs the checks and collects all problems.
#include "config/load.hpp"

#include "config/check.hpp"
#include "config/describe.hpp"
#include "config/environment.hpp"
#include "config/problem.hpp"
#include "config/yaml_tree.hpp"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace headgate::config {

namespace {

namespace fs = std::filesystem;

inline constexpr std::size_t max_include_depth = 8;
inline constexpr std::size_t max_included_files = 256;

// Several files merged into one map: maps of names are merged, lists are appended, any other key may be in one file
// only. Every node keeps the number of its file.
struct merged_files
{
    std::deque<tree> trees;  // own the nodes
    std::deque<node> copies; // of top-level values, to which other files may add
    node root;               // one map with the keys of all files
    bool usable = false;     // false: the first file could not be read
};

class file_merger
{
public:
    file_merger(merged_files& out, const environment& env, places& at, std::vector<problem>& problems)
        : out_(out), env_(env), at_(at), problems_(problems)
    {
        out_.root.kind = node_kind::map;
    }

    void add_file(const std::string& text, const std::string& shown_name)
    {
        const int file = at_.add_file(shown_name);
        open_.push_back(shown_name);
        auto& tree = out_.trees.emplace_back(parse_yaml(text, file, shown_name, problems_));
        total_nodes_ += tree.root ? tree.root->size : 0;
        if (total_nodes_ > max_nodes)
            problems_.push_back(
                {severity::error, shown_name, 1, 1, {}, "the files together have more than 1,000,000 nodes"});
        else
            add_root(tree.root, shown_name, file);
        open_.pop_back();
    }

private:
    void add_root(const node* root, const std::string& shown_name, int file)
    {
        const bool first = file == 0;
        if (!root || root->is(node_kind::null)) {
            const bool reported =
                std::any_of(problems_.begin(), problems_.end(), [&](const problem& p) { return p.file == shown_name; });
            if (!reported)
                problems_.push_back({severity::error,
                                     shown_name,
                                     1,
                                     1,
                                     {},
                                     "the file is empty; begin with `listeners:` and `routes:`, as in gateway.yaml"});
            return;
        }
        if (!root->is(node_kind::map)) {
            problems_.push_back({severity::error,
                                 shown_name,
                                 root->line,
                                 root->column,
                                 {},
                                 "the file must be a map of keys, such as `listeners:` and `routes:`"});
            return;
        }
        if (first) {
            out_.root.file = file;
            out_.root.line = root->line;
            out_.root.column = root->column;
            out_.usable = true;
        }
        for (const auto& [key, value] : root->entries)
            if (key->text != "include" || first)
                join(*key, *value);
        if (const node* list = root->find("include"))
            include_all(*list, shown_name);
    }

    void include_all(const node& list, const std::string& shown_name)
    {
        if (list.is(node_kind::scalar))
            return include(list, "include", shown_name);
        for (std::size_t i = 0; i < list.items.size(); ++i)
            if (list.items[i]->is(node_kind::scalar))
                include(*list.items[i], "include[" + std::to_string(i) + "]", shown_name);
            else if (list.file != 0)
                refuse_shape(*list.items[i], shown_name);
        // The list of the first file is also loaded as a field, which reports a wrong type.
        if (list.file != 0 && list.is(node_kind::map))
            refuse_shape(list, shown_name);
    }

    void refuse_shape(const node& n, const std::string& from)
    {
        problems_.push_back({severity::error, from, n.line, n.column, "include", "this must be a list of paths"});
    }

    void include(const node& name, const std::string& path, const std::string& from)
    {
        const auto refuse = [&](std::string message) {
            problems_.push_back({severity::error, from, name.line, name.column, path, std::move(message)});
        };
        auto file = fs::path(name.text);
        if (file.is_relative())
            file = fs::path(from).parent_path() / file;
        const auto shown = file.lexically_normal().string();
        if (std::find(open_.begin(), open_.end(), shown) != open_.end())
            return refuse("the files include each other in a cycle: " + chain_to(shown));
        if (open_.size() > max_include_depth)
            return refuse("includes are more than 8 levels deep");
        if (at_.has_file(shown))
            return refuse("`" + shown + "` is included twice; remove one");
        if (out_.trees.size() > max_included_files)
            return refuse("more than 256 files are included");
        const auto read = env_.read(file, max_file_bytes);
        if (!read.complaint.empty())
            return refuse("`" + name.text + "` cannot be included: " + read.complaint);
        add_file(read.text, shown);
    }

    std::string chain_to(const std::string& last) const
    {
        std::string out;
        for (auto it = std::find(open_.begin(), open_.end(), last); it != open_.end(); ++it)
            out += *it + " -> ";
        return out + last;
    }

    void join(const node& key, const node& value)
    {
        auto& entries = out_.root.entries;
        const auto it =
            std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first->text == key.text; });
        if (it == entries.end()) {
            // A copy, so that entries of other files do not change this file's tree.
            entries.emplace_back(&key, &own_.emplace_back(value));
            return;
        }
        node& there = *const_cast<node*>(it->second);
        if (value.is(node_kind::null))
            return;
        if (there.is(node_kind::null))
            there = value;
        else if (there.is(node_kind::sequence) && value.is(node_kind::sequence))
            there.items.insert(there.items.end(), value.items.begin(), value.items.end());
        else if (there.is(node_kind::map) && value.is(node_kind::map) && is_map_of_names(key.text))
            join_names(key.text, there, value);
        else
            report_duplicate(key, key.text, *it->first);
    }

    static bool is_map_of_names(const std::string& key)
    {
        static const std::string names[] = {"stores", "jwt", "api_keys", "keys", "chains", "upstreams"};
        return std::find(std::begin(names), std::end(names), key) != std::end(names);
    }

    void join_names(const std::string& section, node& there, const node& value)
    {
        std::unordered_map<std::string_view, const node*> known;
        for (const auto& entry : there.entries)
            known.emplace(entry.first->text, entry.first);
        for (const auto& entry : value.entries) {
            const auto found = known.find(entry.first->text);
            if (found == known.end())
                there.entries.push_back(entry);
            else
                report_duplicate(*entry.first, section + "." + entry.first->text, *found->second);
        }
    }

    void report_duplicate(const node& key, const std::string& path, const node& first)
    {
        problems_.push_back({severity::error, at_.file(key.file), key.line, key.column, path,
                             "this is given in two files, first at " + at_.file(first.file) + ":" +
                                 std::to_string(first.line) + ":" + std::to_string(first.column) +
                                 "; keep one of them"});
    }

    merged_files& out_;
    const environment& env_;
    places& at_;
    std::vector<problem>& problems_;
    std::vector<std::string> open_; // files being read, outermost first
    std::size_t total_nodes_ = 0;
    std::deque<node>& own_ = out_.copies;
};

merged_files read_with_includes(const std::string& text, const std::string& shown_name, const environment& env,
                                places& at, std::vector<problem>& problems)
{
    merged_files out;
    file_merger(out, env, at, problems).add_file(text, shown_name);
    return out;
}

void sort_by_place(std::vector<problem>& problems, const places& at)
{
    std::stable_sort(problems.begin(), problems.end(), [&](const problem& a, const problem& b) {
        return std::tuple(at.order_of(a.file), a.line, a.column) < std::tuple(at.order_of(b.file), b.line, b.column);
    });
}

} // namespace

load_result load_text(const std::string& text, const std::string& shown_name, const environment& env)
{
    load_result result;
    const auto at = std::make_shared<places>();
    // A file that cannot be parsed stops here; all other errors are collected.
    const auto files = read_with_includes(text, shown_name, env, *at, result.problems);
    if (files.usable) {
        gateway_config config;
        load_context l(*at, result.problems, env);
        type_of<gateway_config>().load(l, files.root, {}, {}, &config);
        checker check{.config = config, .at = *at, .loaded = l, .problems = result.problems, .env = env};
        check_all(check);
        config.places = at;
        if (!has_errors(result.problems))
            result.config = std::move(config);
    }
    sort_by_place(result.problems, *at);
    return result;
}

load_result load_file(const std::filesystem::path& file, const environment& env)
{
    auto read = env.read(file, max_file_bytes);
    if (!read.complaint.empty())
        return {{}, {{severity::error, file.string(), 0, 0, {}, read.complaint}}};
    return load_text(read.text, file.string(), env);
}

} // namespace headgate::config
