// Looks about once a second whether a client has gone while its request waits for something else.
#pragma once

#include "gateway/client/client.hpp"

namespace headgate {

// Cancels `waiting` when the client has gone, while it lives.
class client_watch final : private cancellable
{
public:
    client_watch(client& from, cancellable& waiting) : client_(from), waiting_(waiting) { client_.watch(this); }
    ~client_watch() { client_.watch(nullptr); }
    client_watch(const client_watch&) = delete;
    client_watch& operator=(const client_watch&) = delete;

    bool client_is_gone() const { return client_is_gone_; }

private:
    void cancel() override
    {
        client_is_gone_ = true;
        waiting_.cancel();
    }

    client& client_;
    cancellable& waiting_;
    bool client_is_gone_ = false;
};

} // namespace headgate
