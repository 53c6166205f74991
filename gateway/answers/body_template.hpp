// The body of a refusal in the operator's words: text with places for {rule}, {limit} and {wait}. Cut into pieces once,
// so that a refusal only puts them together. Braces that name nothing else stay as they are: JSON is full of them.
#pragma once

#include "gateway/http/buffer.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace headgate {

class body_template
{
public:
    // What is put into the places; escaped as the body's media type needs it.
    struct values
    {
        std::string_view rule, limit, wait;
    };

    body_template() = default;
    body_template(std::string_view text, std::string_view content_type);

    void append_to(http::byte_buffer& out, const values& known) const;

private:
    enum class escaping
    {
        none,
        json,
        markup // HTML and XML
    };
    struct piece
    {
        std::string text;
        std::string_view values::*place = nullptr; // comes after the text; null: nothing does
    };
    static escaping escaping_for(std::string_view content_type);

    std::vector<piece> pieces_;
    escaping escaping_ = escaping::none;
};

} // namespace headgate
