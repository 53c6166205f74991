#include "tests/limiter/memory_under_test.hpp"

namespace headgate::testing {

const std::vector<named_limiter>& limiters_under_test()
{
    static const std::vector<named_limiter> all{{"memory", [] { return std::make_unique<memory_under_test>(); }}};
    return all;
}

} // namespace headgate::testing
