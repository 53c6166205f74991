// The contract tests run with one server, with the master that sentinels name, and on a cluster.
#include "tests/redis_client/cluster_group.hpp"
#include "tests/redis_client/sentinel_group.hpp"

namespace headgate::testing {

namespace {

std::shared_ptr<redis::link_source> single_server(client_loop& in)
{
    return std::make_shared<redis::single_link>(
        std::make_shared<redis::link>(in.events, in.names, options_for(shared_server()), in.keep_told()));
}

std::shared_ptr<redis::link_source> behind_sentinels(client_loop& in)
{
    static sentinel_group group(0);
    return group.source(in, std::chrono::seconds{30});
}

std::shared_ptr<redis::link_source> on_a_cluster(client_loop& in)
{
    static cluster_group group;
    return group.source(in, std::chrono::seconds{30});
}

} // namespace

const std::vector<named_limiter>& limiters_under_test()
{
    static const std::vector<named_limiter> all{
        {"redis, over the client", [] { return std::make_unique<client_under_test>(single_server); }},
        {"redis, behind sentinels", [] { return std::make_unique<client_under_test>(behind_sentinels); }},
        {"redis cluster", [] { return std::make_unique<client_under_test>(on_a_cluster); }}};
    return all;
}

} // namespace headgate::testing
