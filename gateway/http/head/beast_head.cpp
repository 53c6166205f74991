#include "gateway/http/head/beast_head.hpp"

#include "gateway/http/text.hpp"

#include <boost/beast/http/basic_parser.hpp>

#include <array>
#include <limits>

namespace headgate::http {

namespace {

namespace beast = boost::beast;

using boost::system::error_code;

std::string_view to_view(beast::string_view text) { return {text.data(), text.size()}; }

// This is the only file of the request path that includes Beast's parser, and it is compiled here with the headers:
// with BOOST_BEAST_SEPARATE_COMPILATION less is inlined, and a browser's head takes a third longer (bench_http).
//
// Beast's own limits and its view of the body decide nothing here: the scan and framing.hpp have judged both.
template <bool is_request, class Head>
class view_parser final : public beast::http::basic_parser<is_request>
{
public:
    view_parser(std::string_view received, const head_extent& where, Head& head)
        : head_(head), fields_(head.fields), received_(received), at_(where.fields), end_(where.end),
          field_count_(where.field_count), underscores_(where.underscores)
    {
        this->header_limit(std::numeric_limits<std::uint32_t>::max());
        this->body_limit(boost::none);
        this->skip(true);
        fields_.clear();
    }

    // Whether the lines that were reported fill the head to its end.
    bool is_whole() const { return this->is_done() && fields_.lines.size() == field_count_ && at_ + 2 == end_; }

private:
    using text = beast::string_view;

    static void refuse(error_code& error) { error = beast::http::error::bad_field; }

    void on_request_impl(beast::http::verb, text method, text target, int version, error_code& error) override
    {
        if constexpr (is_request) {
            if (to_view(method) != head_.method || to_view(target) != head_.target ||
                version != static_cast<int>(10 + head_.minor_version))
                return refuse(error);
            head_.method = to_view(method);
            head_.target = to_view(target);
        }
    }

    void on_response_impl(int status, text reason, int version, error_code& error) override
    {
        if constexpr (!is_request) {
            if (status != static_cast<int>(head_.status) || to_view(reason) != head_.reason ||
                version != static_cast<int>(10 + head_.minor_version))
                return refuse(error);
            head_.status = static_cast<unsigned>(status);
            head_.reason = reason.empty() ? std::string_view{} : to_view(reason);
        }
    }

    void on_field_impl(beast::http::field, text beast_name, text beast_value, error_code& error) override
    {
        const auto name = to_view(beast_name), value = to_view(beast_value);
        const char* const line = received_.data() + at_;
        const auto line_size = measure_line(line, name, value);
        if (line_size == 0)
            return refuse(error);
        // All but CR LF: a name, a colon, one blank and a value.
        const bool verbatim =
            line_size == name.size() + value.size() + 4 && line[name.size() + 1] == ' ' && !value.empty();
        const bool is_short = name.size() < 16 && received_.size() - at_ >= 16;
        const auto id = is_short ? find_short_field_id(line, name.size()) : find_field_id(name);
        const bool underscore = underscores_ && name.find('_') != std::string_view::npos;
        at_ += line_size;
        fields_.lines.push_back({name, value, id, underscore, verbatim});
        fields_.present |= bit(id);
    }

    // The size of the line that begins at `line` and is `name`, colon, blanks, `value`, blanks, CR LF; zero if it is
    // not. Addresses are compared before a byte is read: the value of a folded field would lie in memory of Beast's.
    std::size_t measure_line(const char* line, std::string_view name, std::string_view value) const
    {
        const auto left = end_ - at_;
        const auto colon = name.size();
        const auto value_at = address_of(value.data()) - address_of(line);
        if (name.data() != line || colon >= left || value_at <= colon || value_at > left ||
            value.size() + 2 > left - value_at || line[colon] != ':')
            return 0;
        if (!value.empty() && (is_blank(value.front()) || is_blank(value.back())))
            return 0;
        for (auto at = colon + 1; at < value_at; ++at)
            if (!is_blank(line[at]))
                return 0;
        auto line_end = value_at + value.size();
        while (is_blank(line[line_end])) // the head ends with a line end
            ++line_end;
        return line[line_end] == '\r' && line[line_end + 1] == '\n' ? line_end + 2 : 0;
    }

    void on_header_impl(error_code&) override {}
    void on_finish_impl(error_code&) override {}

    // No byte of a body is ever put into this parser.
    void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code& error) override { refuse(error); }
    std::size_t on_body_impl(text, error_code& error) override { return refuse(error), 0; }
    void on_chunk_header_impl(std::uint64_t, text, error_code& error) override { refuse(error); }
    std::size_t on_chunk_body_impl(std::uint64_t, text, error_code& error) override { return refuse(error), 0; }

    Head& head_;
    field_list& fields_;
    std::string_view received_;
    std::size_t at_; // offset of the next field line
    std::size_t end_;
    std::size_t field_count_;
    bool underscores_;
};

// Puts received[begin, end) into `parser`. Returns whether it took all of that without an error.
template <class Parser>
bool put(Parser& parser, std::string_view received, std::size_t begin, std::size_t end)
{
    error_code error;
    return parser.put(boost::asio::const_buffer(received.data() + begin, end - begin), error) == end - begin && !error;
}

} // namespace

bool parse_with_beast(std::string_view received, const head_extent& where, request_head& head)
{
    view_parser<true, request_head> parser(received, where, head);
    return put(parser, received, where.first, where.end) && parser.is_whole();
}

bool parse_with_beast(std::string_view received, const head_extent& where, response_head& head)
{
    view_parser<false, response_head> parser(received, where, head);
    constexpr std::size_t without_reason = sizeof "HTTP/1.1 200" - 1;
    const auto line = where.fields - where.first - 2;
    if (line != without_reason)
        return put(parser, received, where.first, where.end) && parser.is_whole();

    // Beast wants the space after the status even if no reason follows. It gets the status line from a copy that has
    // one, and the fields from the buffer.
    std::array<char, without_reason + 3> repaired;
    auto* to = std::copy_n(received.data() + where.first, without_reason, repaired.data());
    std::copy_n(" \r\n", 3, to);
    error_code error;
    const auto taken = parser.put(boost::asio::const_buffer(repaired.data(), repaired.size()), error);
    return taken == repaired.size() && error == beast::http::error::need_more &&
           put(parser, received, where.fields, where.end) && parser.is_whole();
}

} // namespace headgate::http
