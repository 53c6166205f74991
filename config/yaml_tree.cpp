#include "config/yaml_tree.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

namespace headgate::config {

const node* node::find(std::string_view key) const
{
    for (const auto& [name, value] : entries)
        if (name->text == key)
            return value;
    return nullptr;
}

namespace {

// Ends the parse after its cause has been reported.
struct stop_parsing
{};

class tree_builder : public YAML::EventHandler
{
public:
    tree_builder(tree& out, int file, const std::string& shown_name, std::vector<problem>& problems)
        : out_(out), file_(file), shown_name_(shown_name), problems_(problems)
    {}

    void OnDocumentStart(const YAML::Mark& mark) override
    {
        if (out_.root)
            refuse(mark, "a second YAML document begins here; write one document, and use `include` for more "
                         "files");
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override
    {
        node& n = make(mark, node_kind::null, anchor);
        complete(n);
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override
    {
        node& n = make(mark, node_kind::scalar, anchor);
        n.text = value;
        n.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
        if (!n.quoted)
            check_tag(mark, tag);
        if (!n.quoted && (value.empty() || value == "~" || value == "null"))
            n.kind = node_kind::null;
        complete(n);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override
    {
        const auto it = anchors_.find(anchor);
        if (it == anchors_.end() || !it->second.second)
            refuse(mark, "this alias is inside the node it refers to; move it out of that node");
        if (stack_.size() + 1 > max_depth)
            refuse(mark, too_deep);
        place(*it->second.first, mark);
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override
    {
        begin(mark, tag, node_kind::sequence, anchor);
    }
    void OnSequenceEnd() override { end(); }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override
    {
        begin(mark, tag, node_kind::map, anchor);
    }
    void OnMapEnd() override { end(); }

private:
    struct open_node
    {
        node* n;
        const node* key = nullptr; // the key of a map whose value comes next
        std::unordered_map<std::string_view, const node*> keys = {};
    };

    static constexpr const char* too_deep = "more than 64 levels of nesting; reduce them";

    [[noreturn]] void refuse(const YAML::Mark& mark, std::string message)
    {
        problems_.push_back({severity::error, shown_name_, mark.line + 1, mark.column + 1, {}, std::move(message)});
        throw stop_parsing{};
    }

    void check_tag(const YAML::Mark& mark, const std::string& tag)
    {
        if (!tag.empty() && tag != "?" && tag != "!" && !tag.starts_with("tag:yaml.org,2002:"))
            refuse(mark, "tags such as `!name` are not supported; remove it");
    }

    node& make(const YAML::Mark& mark, node_kind kind, YAML::anchor_t anchor)
    {
        node& n = out_.nodes.emplace_back();
        n.kind = kind;
        n.file = file_;
        n.line = mark.line + 1;
        n.column = mark.column + 1;
        if (anchor)
            anchors_[anchor] = {&n, kind == node_kind::null || kind == node_kind::scalar};
        return n;
    }

    void begin(const YAML::Mark& mark, const std::string& tag, node_kind kind, YAML::anchor_t anchor)
    {
        check_tag(mark, tag);
        if (stack_.size() >= max_depth)
            refuse(mark, too_deep);
        if (!stack_.empty() && stack_.back().n->kind == node_kind::map && !stack_.back().key)
            refuse(mark, "a key must be plain text, not a list or a map");
        node& n = make(mark, kind, anchor);
        stack_.push_back({&n});
        if (anchor)
            open_anchors_.emplace_back(&n, anchor);
    }

    void end()
    {
        node& n = *stack_.back().n;
        stack_.pop_back();
        if (!open_anchors_.empty() && open_anchors_.back().first == &n) {
            anchors_[open_anchors_.back().second].second = true;
            open_anchors_.pop_back();
        }
        complete(n);
    }

    void complete(node& n)
    {
        YAML::Mark mark;
        mark.line = n.line - 1;
        mark.column = n.column - 1;
        place(n, mark);
    }

    // Adds a complete node, or an alias of it, to the innermost open node.
    void place(const node& n, const YAML::Mark& mark)
    {
        if (stack_.empty()) {
            if (!out_.root)
                out_.root = &n;
            return;
        }
        open_node& parent = stack_.back();
        parent.n->size += n.size;
        if (out_.nodes.size() > max_nodes || parent.n->size > max_nodes)
            refuse(mark, "more than 1,000,000 nodes after the aliases are expanded; reduce them");
        if (parent.n->kind == node_kind::sequence)
            parent.n->items.push_back(&n);
        else if (!parent.key)
            take_key(parent, n, mark);
        else
            take_value(parent, n);
    }

    void take_key(open_node& parent, const node& n, const YAML::Mark& mark)
    {
        if (n.kind == node_kind::map || n.kind == node_kind::sequence)
            refuse(mark, "a key must be plain text, not a list or a map");
        if (n.kind == node_kind::null)
            refuse(mark, "a key is missing before this colon");
        if (n.text == "<<" && !n.quoted)
            refuse(mark, "merge keys (`<<`) are not supported; write the keys out, or alias whole values");
        parent.key = &n;
    }

    void take_value(open_node& parent, const node& n)
    {
        const auto [first, is_new] = parent.keys.emplace(parent.key->text, parent.key);
        if (is_new)
            parent.n->entries.emplace_back(parent.key, &n);
        else
            problems_.push_back({severity::error, shown_name_, parent.key->line, parent.key->column, path_here(),
                                 "this key is given twice, first at line " + std::to_string(first->second->line) +
                                     "; keep one of them"});
        parent.key = nullptr;
    }

    // Returns the path of the current position, for problems found while parsing.
    std::string path_here() const
    {
        std::string path;
        for (const auto& open : stack_) {
            if (open.n->kind == node_kind::sequence)
                path += "[" + std::to_string(open.n->items.size()) + "]";
            else if (open.key)
                path += (path.empty() ? "" : ".") + open.key->text;
        }
        return path;
    }

    tree& out_;
    int file_;
    const std::string& shown_name_;
    std::vector<problem>& problems_;
    std::vector<open_node> stack_;
    std::unordered_map<YAML::anchor_t, std::pair<const node*, bool>> anchors_; // the node, and whether it is complete
    std::vector<std::pair<const node*, YAML::anchor_t>> open_anchors_;
};

// yaml-cpp reports a tab in the indentation in many ways; this finds the line of it. 0: there is none.
int line_indented_by_tab(const std::string& text, int up_to_line)
{
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; number <= up_to_line && std::getline(lines, line); ++number) {
        const auto first = line.find_first_not_of(" \t");
        if (first != std::string::npos && line[first] != '#' && line.find('\t') < first)
            return number;
    }
    return 0;
}

// Inside { } and [ ] the brace of an unquoted ${NAME} begins a map, and yaml-cpp complains about that. Returns the
// column of the `$` if the error at this column is one, else 0.
int column_of_variable(const std::string& text, int line, int column)
{
    std::istringstream lines(text);
    std::string found;
    for (int number = 0; number < line && std::getline(lines, found); ++number) {
    }
    const auto brace = static_cast<std::size_t>(std::max(column, 1)) - 1;
    return brace > 0 && brace < found.size() && found.compare(brace - 1, 2, "${") == 0 ? column - 1 : 0;
}

problem bad_encoding(const std::string& text, std::size_t at, const std::string& shown_name)
{
    const auto before = std::string_view(text).substr(0, at);
    const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
    const auto start = before.find_last_of('\n');
    const auto column = static_cast<int>(start == std::string_view::npos ? at : at - start - 1) + 1;
    static constexpr char hex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::string shown{'0', 'x', hex[byte >> 4U], hex[byte & 15U]};
    const auto what = byte < 0x80 ? "the control character " + shown + " is not allowed in YAML; remove it"
                                  : "the byte " + shown + " is not valid UTF-8; save the file as UTF-8";
    return {severity::error, shown_name, line, column, {}, what};
}

} // namespace

std::size_t first_bad_byte(std::string_view text)
{
    const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const auto follows = [&](std::size_t i) { return (at(i) & 0xC0U) == 0x80U; };
    for (std::size_t i = 0; i < text.size();) {
        const unsigned c = at(i);
        std::size_t length = 1;
        if (c < 0x80) {
            if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F)
                return i;
        } else if (c >= 0xC2 && c <= 0xDF && follows(i + 1)) {
            length = 2;
        } else if (c >= 0xE0 && c <= 0xEF && follows(i + 1) && follows(i + 2) && !(c == 0xE0 && at(i + 1) < 0xA0) &&
                   !(c == 0xED && at(i + 1) > 0x9F)) {
            length = 3;
        } else if (c >= 0xF0 && c <= 0xF4 && follows(i + 1) && follows(i + 2) && follows(i + 3) &&
                   !(c == 0xF0 && at(i + 1) < 0x90) && !(c == 0xF4 && at(i + 1) > 0x8F)) {
            length = 4;
        } else {
            return i;
        }
        i += length;
    }
    return std::string_view::npos;
}

tree parse_yaml(const std::string& text, int file, const std::string& shown_name, std::vector<problem>& problems)
{
    tree out;
    if (const auto bad = first_bad_byte(text); bad != std::string::npos) {
        problems.push_back(bad_encoding(text, bad, shown_name));
        return out;
    }
    tree_builder builder(out, file, shown_name, problems);
    try {
        std::istringstream stream(text);
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
        return out;
    } catch (const stop_parsing&) {
    } catch (const YAML::Exception& e) {
        const int line = std::max(e.mark.line + 1, 1);
        if (const int tab = line_indented_by_tab(text, line + 1))
            problems.push_back({severity::error, shown_name, tab, 1, {}, "a tab in the indentation; use spaces"});
        else if (const int variable = column_of_variable(text, line, e.mark.column + 1))
            problems.push_back({severity::error,
                                shown_name,
                                line,
                                variable,
                                {},
                                "inside `{ }` and `[ ]` a value with `${` must be in quotes, as in \"${NAME}\""});
        else
            problems.push_back({severity::error,
                                shown_name,
                                line,
                                std::max(e.mark.column + 1, 1),
                                {},
                                "this is not valid YAML: " + e.msg});
    }
    out.root = nullptr;
    return out;
}

} // namespace headgate::config
