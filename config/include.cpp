#include "config/include.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <unordered_map>

namespace headgate::config {

namespace {

namespace fs = std::filesystem;

class joiner
{
public:
    joiner(joined_files& out, const outside& world, places& at, std::vector<problem>& problems)
        : out_(out), world_(world), at_(at), problems_(problems)
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
        // The first file's own list is also read as a field, which reports its shape.
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
            return refuse("the files include each other in a circle: " + chain_to(shown));
        if (open_.size() > max_include_depth)
            return refuse("files include files more than 8 deep");
        if (at_.has_file(shown))
            return refuse("`" + shown + "` is included twice; once is enough");
        if (out_.trees.size() > max_included_files)
            return refuse("more than 256 files are included");
        const auto read = world_.read(file, max_file_bytes);
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
            // Copied, so that what other files add does not change the file's own tree.
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
            report_twice(key, key.text, *it->first);
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
                report_twice(*entry.first, section + "." + entry.first->text, *found->second);
        }
    }

    void report_twice(const node& key, const std::string& path, const node& first)
    {
        problems_.push_back({severity::error, at_.file(key.file), key.line, key.column, path,
                             "this stands in two files, first at " + at_.file(first.file) + ":" +
                                 std::to_string(first.line) + ":" + std::to_string(first.column) +
                                 "; keep one of them"});
    }

    joined_files& out_;
    const outside& world_;
    places& at_;
    std::vector<problem>& problems_;
    std::vector<std::string> open_; // files being read, outermost first
    std::size_t total_nodes_ = 0;
    std::deque<node>& own_ = out_.copies;
};

} // namespace

joined_files read_with_includes(const std::string& text, const std::string& shown_name, const outside& world,
                                places& at, std::vector<problem>& problems)
{
    joined_files out;
    joiner(out, world, at, problems).add_file(text, shown_name);
    return out;
}

} // namespace headgate::config
