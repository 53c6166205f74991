#include "gateway/request/guard.hpp"

#include "gateway/request/identify.hpp"
#include "gateway/request/request.hpp"

#include <span>

namespace headgate {

bool has_new_identity(request& r, charged_chain& chain, limiter::time_point now)
{
    const auto& guard = *chain.chain->guard;
    auto& text = r.memory->keys;
    const auto begin = text.size();
    chain.new_identity.reset();
    chain.is_final = false;
    // When the key cannot be read, the chains behind the guard, which use it, answer with the error.
    const bool is_known = append_key(text, {&guard.key, 1}, r) == key_state::known;
    const auto identity = text.view().substr(begin);
    if (is_known && guard.may_be_invented(identity)) {
        const auto hash = guard.memory->hash_of(identity);
        if (!guard.memory->is_seen(hash, now))
            chain.new_identity = hash;
    }
    text.truncate(begin);
    return chain.new_identity && !guard.memory->is_in_grace(now);
}

void remember_identities(request& r, limiter::time_point now)
{
    for (auto& chain : std::span(r.memory->chains).first(r.limits.outcome.chains)) {
        if (!chain.chain->guard)
            break; // guards come first
        if (!chain.new_identity)
            continue;
        const bool was_faster = chain.chain->guard->memory->remember(*chain.new_identity, now);
        if (was_faster && chain.count > 0)
            chain.chain->store->give_back(chain.view(), chain.keys[0].charged_at, now);
        chain.is_final = true; // a client that leaves now has used it
    }
}

} // namespace headgate
