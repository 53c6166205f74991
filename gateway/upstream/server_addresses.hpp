// Where one server of an upstream can be reached: its literal address, or what its name led to last. Names are looked
// up off the worker's thread; everything here happens on it. The last good answer is kept until there is a better one.
#pragma once

#include "config/model.hpp"
#include "gateway/http/errors.hpp"
#include "limiter/io/asio.hpp"
#include "limiter/io/deadline.hpp"
#include "limiter/io/name_resolver.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace headgate {

class client;
class worker;

class server_addresses : public std::enable_shared_from_this<server_addresses>
{
public:
    server_addresses(worker& owner, const config::host_port& server);

    // Looks the name up, unless that was done in the last few seconds. Nothing to do for a literal address.
    void refresh();
    std::size_t count() const { return all_.size(); }
    // Returns one after the other, in turn.
    const asio::ip::tcp::endpoint& next();

    // Waits for the first answer when there has been none yet. `none` when there are addresses.
    task<http::http_error> until_known(client& from, deadline_list& within);
    // Requests that wait for an address end with an error.
    void stop();

private:
    class waiting_request;

    void receive(const name_resolver::answer& said);
    void wake_all();

    worker& worker_;
    config::host_port server_;
    std::vector<asio::ip::tcp::endpoint> all_;
    std::size_t turn_ = 0;
    bool is_literal_ = false, asking_ = false, stopped_ = false;
    steady_time asked_{};
    std::vector<waiting_request*> waiting_;
};

} // namespace headgate
