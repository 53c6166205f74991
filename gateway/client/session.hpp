// A client connection, as its worker sees it.
#pragma once

#include <boost/intrusive/list_hook.hpp>

namespace headgate {

class session : public boost::intrusive::list_base_hook<>
{
public:
    // A connection whose listener has closed, because the worker drains or the address was removed, ends when it is
    // idle and after its answer: closes it now if it is idle.
    virtual void let_go() = 0;
    // The worker stops and has closed its listeners: the connection is closed at once, whatever it waits for.
    virtual void cut() = 0;

protected:
    ~session() = default;
};

} // namespace headgate
