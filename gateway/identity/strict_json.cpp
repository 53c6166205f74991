#include "gateway/identity/strict_json.hpp"

#include <utility>
#include <vector>

namespace headgate::identity {

namespace {

using json = nlohmann::json;

// Builds the value from the parser's events; returning `false` from an event ends the parsing.
class builder
{
public:
    explicit builder(strict_json& result) : result_(result) {}

    bool null() { return put(nullptr); }
    bool boolean(bool value) { return put(value); }
    bool number_integer(json::number_integer_t value) { return put(value); }
    bool number_unsigned(json::number_unsigned_t value) { return put(value); }
    bool number_float(json::number_float_t value, const std::string&) { return put(value); }
    bool string(std::string& value) { return put(std::move(value)); }
    bool binary(json::binary_t&) { return false; } // not in JSON text
    bool start_object(std::size_t) { return open(json::object()); }
    bool start_array(std::size_t) { return open(json::array()); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }

    bool key(std::string& name)
    {
        auto& members = open_.back()->get_ref<json::object_t&>();
        const auto [member, fresh] = members.try_emplace(std::move(name));
        if (!fresh)
            result_.complaint = "the name " + json(member->first).dump() + " occurs twice in one object";
        member_ = &member->second;
        return fresh;
    }

    bool parse_error(std::size_t offset, const std::string&, const json::exception&)
    {
        result_.complaint = "this is not JSON";
        result_.offset = offset;
        return false;
    }

private:
    bool put(json value) { return place(std::move(value)) != nullptr; }

    json* place(json value)
    {
        if (open_.empty())
            return &(result_.value = std::move(value));
        if (open_.back()->is_object())
            return &(*member_ = std::move(value));
        auto& elements = open_.back()->get_ref<json::array_t&>();
        return &elements.emplace_back(std::move(value));
    }

    bool open(json empty)
    {
        if (open_.size() == deepest_json) {
            result_.complaint = "this is nested more than " + std::to_string(deepest_json) + " levels deep";
            return false;
        }
        open_.push_back(place(std::move(empty)));
        return true;
    }

    bool close()
    {
        open_.pop_back();
        return true;
    }

    strict_json& result_;
    std::vector<json*> open_; // the pointers stay valid: only the innermost container grows
    json* member_ = nullptr;  // receives the value of the latest name
};

} // namespace

strict_json parse_strict_json(std::string_view text)
{
    strict_json result;
    builder pieces(result);
    if (!json::sax_parse(text.begin(), text.end(), &pieces) && result.complaint.empty())
        result.complaint = "this is not JSON";
    return result;
}

const nlohmann::json* find_member(const nlohmann::json& object, std::string_view name)
{
    if (!object.is_object())
        return nullptr;
    const auto member = object.find(name);
    return member == object.end() ? nullptr : &*member;
}

} // namespace headgate::identity
