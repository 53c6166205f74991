// A refusal's body from the operator's template: text with the placeholders {rule}, {limit} and {wait}. It is split
// into pieces once, so that a refusal only joins them. All other braces are literal text, because JSON contains many.
#pragma once

#include "gateway/http/buffer.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace headgate {

class body_template
{
public:
    // The values of the placeholders; they are escaped as the body's media type requires.
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
        std::string_view values::*place = nullptr; // follows the text; null: no value follows
    };
    static escaping escaping_for(std::string_view content_type);

    std::vector<piece> pieces_;
    escaping escaping_ = escaping::none;
};

} // namespace headgate
