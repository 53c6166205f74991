// The index of one shard, with hashes that collide: lines overflow into the next ones, also at the end of the index.
#include "limiter/memory/key_table.hpp"
#include "tests/support/rules.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>

using namespace headgate::limiter;
using namespace headgate::testing;

TEST_CASE("key table: inserted keys are found until they are erased, however their hashes collide")
{
    group_lineage lineage;
    group_directory directory;
    const rule_group group(lineage, 0, {fixed_window(10, std::chrono::hours{1})});
    directory.set(0, &group);
    for (unsigned seed = 0; seed < 20; ++seed) {
        CAPTURE(seed);
        chunk_source memory;
        key_table table;
        table.attach(directory, memory);
        constexpr std::size_t most = 96;
        table.set_limits(most, key_table::entry_bytes(group));
        std::mt19937 random(seed);
        // Few home lines: at the end of the index, at its beginning, and one in the middle.
        const auto hash_of = [&](int key) {
            constexpr std::uint32_t homes[] = {0xffffffff, 0xfff00000, 0, 1, 0x80000000};
            return homes[static_cast<std::size_t>(key) % (1 + seed % 5)];
        };
        std::map<int, bool> present;
        for (int step = 0; step < 5000; ++step) {
            const int key = static_cast<int>(random() % (2 * most));
            const auto text = "key " + std::to_string(key);
            const auto s = table.find(hash_of(key), lineage, text);
            REQUIRE((s != key_table::none) == present[key]);
            CHECK((table.find_plain(hash_of(key), group, text) != nullptr) == present[key]);
            if (s != key_table::none) {
                table.erase(s);
            } else if (table.size() < most) {
                const auto made = table.insert(hash_of(key), group, text, 0, time_point{});
                REQUIRE(made != key_table::none);
                auto e = table.at(made);
                e.words[0] = e.words[1] = ~std::uint64_t{0} >> 2; // not recovered for long: it is never evicted
                CHECK(e.key == text);
            } else {
                continue;
            }
            present[key] = !present[key];
        }
        std::size_t count = 0;
        for (const auto& [key, is_there] : present) {
            count += is_there;
            CHECK((table.find(hash_of(key), lineage, "key " + std::to_string(key)) != key_table::none) == is_there);
        }
        CHECK(table.size() == count);
    }
}
