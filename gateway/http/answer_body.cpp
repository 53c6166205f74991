#include "gateway/http/answer_body.hpp"

#include <algorithm>

namespace headgate::http {

void answer_body::start(const body_framing& framing)
{
    framing_ = framing;
    left_ = framing.length;
    is_done_ = has_excess_ = false;
    is_sound_ = true;
    pieces_.clear();
    if (framing.kind == body_kind::chunked)
        chunks_.reset();
}

void answer_body::take(std::string_view ready)
{
    pieces_.clear();
    switch (framing_.kind) {
    case body_kind::none:
        is_done_ = true;
        has_excess_ = !ready.empty(); // a body all the same, or its beginning
        break;
    case body_kind::length:
        pieces_.push_back(ready.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, ready.size()))));
        left_ -= pieces_.front().size();
        is_done_ = left_ == 0;
        has_excess_ = pieces_.front().size() < ready.size();
        break;
    case body_kind::until_close:
        pieces_.push_back(ready);
        break;
    case body_kind::chunked:
        take_chunks(ready);
        break;
    }
}

void answer_body::take_chunks(std::string_view ready)
{
    auto what = chunk_step::what::data;
    while (what == chunk_step::what::data) {
        const auto step = chunks_.next(ready);
        what = step.kind;
        ready.remove_prefix(step.consumed);
        if (!step.data.empty())
            pieces_.push_back(step.data);
    }
    is_sound_ = what != chunk_step::what::failed;
    is_done_ = what == chunk_step::what::done;
    has_excess_ = is_done_ && !ready.empty();
}

bool answer_body::end()
{
    pieces_.clear();
    is_done_ = is_done_ || framing_.kind == body_kind::until_close;
    return is_done_;
}

} // namespace headgate::http
