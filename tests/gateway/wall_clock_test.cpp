// Steps of the wall clock while the gateway runs.
#include "tests/admin/support.hpp"
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <thread>
#include <unistd.h>

using namespace headgate::tests;
using namespace std::chrono_literals;

namespace {

// Allows three requests per `limit`.
std::string limited_to(const std::string& algorithm, const std::string& limit, const std::string& snapshot = "")
{
    return "workers: 2\nlisteners: [ { address: 127.0.0.1:0 } ]\nstores: { local: { type: memory, max_keys: 1000" +
           snapshot + " } }\nchains:\n  api:\n    rules: [ { name: one, key: client_ip, algorithm: " + algorithm +
           ", limit: " + limit +
           " } ]\nupstreams: { up: { echo: true } }\nroutes: [ { name: all, upstream: up, chains: [ api ] } ]\n";
}

std::string ask(const running_gateway& gateway) { return gateway.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n"); }

int passes(const running_gateway& gateway, int n)
{
    int passed = 0;
    while (n-- > 0)
        passed += status_of(ask(gateway)) == 200;
    return passed;
}

// Sets the wall clock to a time of today, in UTC.
void set_wall_clock(running_gateway& gateway, std::chrono::microseconds time_of_day)
{
    const auto now = gateway.app().clock().moment_now().wall();
    gateway.app().clock().step_wall(std::chrono::floor<std::chrono::days>(now) + time_of_day - now);
    gateway.app().follow_wall_clock();
}

std::string day_of(const std::string& response) { return field_of(response, "Date").substr(5, 2); }
std::string hour_of(const std::string& response) { return field_of(response, "Date").substr(17, 2); }

} // namespace

TEST_CASE("wall clock: Date and windows of the calendar follow it, forward and back")
{
    running_gateway gateway(limited_to("fixed_window", "3/day"));
    set_wall_clock(gateway, 12h);
    CHECK(passes(gateway, 5) == 3);
    const auto noon = ask(gateway);
    CHECK(hour_of(noon) == "12");
    CHECK(std::stoi(field_of(noon, "Retry-After")) > 11 * 3600);
    CHECK(std::stoi(field_of(noon, "Retry-After")) <= 12 * 3600);

    set_wall_clock(gateway, 36h);
    const auto tomorrow = ask(gateway);
    CHECK(status_of(tomorrow) == 200); // a new day
    CHECK(day_of(tomorrow) != day_of(noon));
    CHECK(passes(gateway, 5) == 2);

    set_wall_clock(gateway, -10h); // two days back: what was used tomorrow counts in the day that now runs
    const auto back = ask(gateway);
    CHECK(status_of(back) == 429);
    CHECK(hour_of(back) == "14");
    CHECK(std::stoi(field_of(back, "Retry-After")) > 9 * 3600);
    CHECK(std::stoi(field_of(back, "Retry-After")) <= 10 * 3600);
}

TEST_CASE("wall clock: rates keep the steady time, whatever it shows")
{
    running_gateway gateway(limited_to("token_bucket", "3/hour"));
    CHECK(passes(gateway, 5) == 3);
    for (const auto step : {24h, -48h, 24h * 400}) {
        gateway.app().clock().step_wall(step);
        gateway.app().follow_wall_clock();
        const auto refused = ask(gateway);
        CHECK(status_of(refused) == 429);
        CHECK(std::stoi(field_of(refused, "Retry-After")) <= 1200);
    }
}

TEST_CASE("wall clock: a store that a reload adds follows it too")
{
    running_gateway gateway(limited_to("token_bucket", "3/hour"));
    set_wall_clock(gateway, 36h);
    auto other = limited_to("fixed_window", "3/day");
    other.replace(other.find("local: {"), 5, "fresh");
    gateway.reload(other);
    CHECK(passes(gateway, 5) == 3);
    const auto refused = ask(gateway);
    CHECK(status_of(refused) == 429);
    CHECK(std::stoi(field_of(refused, "Retry-After")) > 11 * 3600);
    CHECK(std::stoi(field_of(refused, "Retry-After")) <= 12 * 3600);
}

TEST_CASE("wall clock: what a gateway saves after a step is right for the next start")
{
    const temporary_folder folder;
    const auto yaml =
        limited_to("fixed_window", "3/day", ", snapshot: { path: " + folder.file("counters") + ", interval: 1h }");
    {
        running_gateway gateway(yaml);
        gateway.app().clock().step_wall(-24h * 10); // only in this test: the next start finds a clock that is ahead
        gateway.app().follow_wall_clock();
        CHECK(passes(gateway, 5) == 3);
    }
    running_gateway later(yaml);
    CHECK(passes(later, 5) == 3);
    later.app().clock().step_wall(24h * 10);
    later.app().follow_wall_clock();
    CHECK(passes(later, 5) == 3);
    later.app().stop(); // written ten days ahead of the next start
    running_gateway corrected(yaml);
    const auto refused = ask(corrected);
    CHECK(status_of(refused) == 429);
    CHECK(std::stoi(field_of(refused, "Retry-After")) <= 24 * 3600);
}

TEST_CASE("wall clock: a gateway that runs looks at it by itself")
{
    headgate::app app(load_configuration(limited_to("fixed_window", "100/day")));
    std::thread running([&] { app.run("unused.yaml"); });
    const auto date = [&] {
        auto client = raw_connection::to(app.ports().front());
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        return day_of(client.read_response());
    };
    const auto today = date();
    app.clock().step_wall(24h);
    CHECK(eventually([&] { return date() != today; }));
    ::kill(::getpid(), SIGTERM);
    running.join();
}
