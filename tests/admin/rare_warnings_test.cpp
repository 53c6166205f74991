// Warnings that would otherwise be logged per request.
#include "gateway/log/rare_warnings.hpp"
#include "tests/admin/support.hpp"

#include <doctest/doctest.h>

using namespace headgate;
using namespace headgate::tests;
using namespace std::chrono_literals;

TEST_CASE("rare warnings: the first event has a line, then one line per period with the number since")
{
    rare_warnings warnings;
    const auto noon = rare_warnings::time{} + 12h;
    CHECK(warnings.note("a", noon) == 1);
    for (int i = 0; i < 5; ++i)
        CHECK(warnings.note("a", noon + i * 10s) == 0);
    CHECK(warnings.note("b", noon + 1s) == 1); // each subject has periods of its own
    CHECK(warnings.note("a", noon + rare_warnings::period) == 6);
    CHECK(warnings.note("a", noon + rare_warnings::period + 1s) == 0);
    CHECK(warnings.note("a", noon + 10 * rare_warnings::period) == 2);
}

TEST_CASE("rare warnings: a detail from outside is escaped and cut")
{
    const captured_log log;
    std::string detail("a\n\"\xff");
    detail.append(1000, 'x');
    warn_rarely("subject of this test", detail);
    warn_rarely("subject of this test", "again");
    CHECK(log.text() == "subject of this test: `a\\u000a\\\"\\u00ff" + std::string(60, 'x') + "`\n");
}
