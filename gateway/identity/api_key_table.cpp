#include "gateway/identity/api_key_table.hpp"

#include "config/environment.hpp"
#include "config/values.hpp"
#include "gateway/identity/openssl.hpp"

#include <algorithm>
#include <utility>

namespace headgate::identity {

namespace {

constexpr std::uintmax_t largest_file = 256 * 1024 * 1024;
constexpr std::size_t longest_user = 256;
constexpr std::size_t most_problems = 100; // bounds the output for a file that is wrong on every line
constexpr std::string_view blanks = " \t\r";

bool is_visible(std::string_view text)
{
    return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// Removes the next word from `line` and returns it; empty at the end of the line.
std::string_view next_word(std::string_view& line)
{
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    const auto word = line.substr(0, line.find_first_of(blanks));
    line.remove_prefix(word.size());
    return word;
}

int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

template <std::size_t N>
bool parse_hex(std::string_view text, std::array<std::uint8_t, N>& bytes)
{
    if (text.size() != 2 * N)
        return false;
    for (std::size_t i = 0; i < N; ++i) {
        const int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
    }
    return true;
}

// Fetched once: fetching an algorithm by name costs more than the digest of a key.
const EVP_MD* sha256()
{
    static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    return algorithm;
}

} // namespace

class api_key_table::reader
{
public:
    explicit reader(std::string_view name) : name_(name) {}

    void read(std::string_view text)
    {
        const auto most = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
        table_.rows_.reserve(most);
        while (!text.empty()) {
            const auto end = std::min(text.find('\n'), text.size());
            ++line_;
            if (const auto complaint = read_line(text.substr(0, end)); !complaint.empty())
                complain(complaint);
            text.remove_prefix(std::min(end + 1, text.size()));
        }
    }

    loaded finish()
    {
        if (wrong_lines_ > most_problems)
            problems_.push_back(std::string(name_) + ": and " + std::to_string(wrong_lines_ - most_problems) +
                                " more lines like these");
        if (!problems_.empty())
            return {{}, std::move(problems_), false};
        return {std::move(table_), {}, false};
    }

private:
    // A complaint never repeats the first word of a line: it may be the key itself, by mistake.
    std::string read_line(std::string_view line)
    {
        auto hash = next_word(line);
        if (hash.empty() || hash.front() == '#')
            return {};
        const auto user = next_word(line), plan = next_word(line);
        if (hash.starts_with("sha256:"))
            hash.remove_prefix(7);
        digest key;
        if (!parse_hex(hash, key))
            return "the line does not begin with a SHA-256 in hex; it is 64 hex digits, as from "
                   "`printf %s KEY | sha256sum`";
        if (user.empty())
            return "there is no user; a line is: hash user plan";
        if (user.size() > longest_user || !is_visible(user))
            return "this is not a valid user name; a user name has 1 to 256 visible ASCII characters";
        if (const auto complaint = plan.empty() ? std::string() : config::check_name(plan); !complaint.empty())
            return "this is not a valid plan name; " + complaint + " (a comment has a line of its own)";
        if (!next_word(line).empty())
            return "there are more than three words; a line is: hash user plan (a comment has a line of its own)";
        const auto [first, fresh] =
            table_.rows_.try_emplace(key, numbered_row{{std::string(user), std::string(plan)}, line_});
        if (!fresh)
            return "the same key is on line " + std::to_string(first->second.line) + "; a key belongs to one user";
        return {};
    }

    void complain(const std::string& what)
    {
        if (++wrong_lines_ <= most_problems)
            problems_.push_back(std::string(name_) + ":" + std::to_string(line_) + ": " + what);
    }

    std::string_view name_;
    std::size_t line_ = 0;
    std::size_t wrong_lines_ = 0;
    std::vector<std::string> problems_;
    api_key_table table_;
};

api_key_table::loaded api_key_table::load(const std::string& path)
{
    const auto file = config::read_regular_file(path, largest_file);
    if (!file.complaint.empty())
        return {{}, {path + ": " + file.complaint}, false};
    return from_text(file.text, path);
}

api_key_table::loaded api_key_table::from_text(std::string_view text, std::string_view name)
{
    reader lines(name);
    lines.read(text);
    auto result = lines.finish();
    result.has_no_bytes = text.empty();
    return result;
}

const api_key_table::row* api_key_table::find(std::string_view presented_key) const
{
    if (presented_key.empty() || presented_key.size() > longest_api_key || !is_visible(presented_key))
        return nullptr;
    digest key;
    unsigned size = 0;
    if (EVP_Digest(presented_key.data(), presented_key.size(), key.data(), &size, sha256(), nullptr) != 1)
        return nullptr;
    const auto found = rows_.find(key);
    return found == rows_.end() ? nullptr : &found->second.owner;
}

std::vector<api_key_table::named_plan> api_key_table::plans_not_in(std::span<const std::string> plans) const
{
    std::vector<named_plan> out;
    for (const auto& [_, numbered] : rows_) {
        const auto& plan = numbered.owner.plan;
        if (!plan.empty() && std::find(plans.begin(), plans.end(), plan) == plans.end())
            out.push_back({numbered.line, plan});
    }
    std::sort(out.begin(), out.end(), [](const named_plan& a, const named_plan& b) { return a.line < b.line; });
    return out;
}

} // namespace headgate::identity
