// A client connection, as its worker sees it.
#pragma once

#include <boost/intrusive/list_hook.hpp>

namespace headgate {

class session : public boost::intrusive::list_base_hook<>
{
public:
    // The worker drains: an idle connection is closed now, a busy one after its answer.
    virtual void let_go() = 0;
    // The worker stops: the connection is closed at once, whatever it waits for.
    virtual void cut() = 0;

protected:
    ~session() = default;
};

} // namespace headgate
