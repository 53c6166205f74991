#include "gateway/request/request.hpp"

#include "gateway/upstream/upstream.hpp"
#include "gateway/worker.hpp"

#include <algorithm>

namespace headgate {

namespace {

// Writes a fresh id, or the client's own where the configuration keeps those that look like one.
std::string_view name_request(worker& on, const http::request_head& head, const compiled_config& config,
                              std::array<char, 128>& id)
{
    const auto& header = config.request_id_header;
    if (config.source.forwarding.request_id.keep && !header.empty()) {
        const auto* own = head.fields.find(header.text);
        const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
        if (own && !own->value.empty() && own->value.size() <= id.size() &&
            std::all_of(own->value.begin(), own->value.end(), visible)) {
            std::copy(own->value.begin(), own->value.end(), id.begin());
            return {id.data(), own->value.size()};
        }
    }
    return on.new_request_id(id.data());
}

} // namespace

request::request(headgate::worker& on, headgate::client& from)
    : worker(on), client(from), memory(on.request_memories().take()), limits(memory->judged), upstream(on.buffers())
{
    if (memory->config != on.config())
        memory->config = on.config();
    received.began = std::chrono::steady_clock::now();
    received.client = {client.connection().peer};
    received.id = name_request(on, head(), config(), memory->id);
    on.enter(*this);
}

request::~request()
{
    worker.leave(*this);
    memory->tokens.clear();
    memory->limit_fields.clear();
    if (memory->config != worker.config()) // a reload came between: what was replaced is not kept
        memory->config.reset();
    worker.request_memories().give_back(std::move(memory));
}

} // namespace headgate
