#include "bench/load/client.hpp"

#include "bench/load/cpu_time.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdexcept>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <utility>

namespace load {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t connecting_at_once = 128; // well below any listen backlog

clock::duration in_seconds(double n)
{
    return std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(n));
}

std::uint64_t nanoseconds(clock::duration d)
{
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, std::chrono::nanoseconds(d).count()));
}

} // namespace

client::client(const options& chosen, std::function<bool()> beside)
    : chosen_(chosen), beside_(std::move(beside)), requests_(chosen), set_(::epoll_create1(0)),
      all_(chosen.connections + chosen.idle)
{
    ::prctl(PR_SET_TIMERSLACK, 1UL); // a request leaves when it is due, not 50 µs later
    for (std::size_t i = chosen.connections; i < all_.size(); ++i)
        all_[i].silent = true;
}

client::~client()
{
    for (auto& one : all_)
        close(one);
    ::close(set_);
}

bool client::connect_all()
{
    const auto from =
        chosen_.close ? chosen_.connections : 0; // with a connection per request there is nothing to keep open
    const auto patience = clock::now() + 60s;
    std::size_t next = from;
    while (primed_ < all_.size() - from) {
        const auto now = clock::now();
        if (now > patience || result_.errors > 100 + all_.size() / 10)
            return false;
        while (next < all_.size() && next - from < primed_ + connecting_at_once)
            start(all_[next++], now);
        wait_until(now + 1s);
    }
    return true;
}

result client::run()
{
    started_ = clock::now();
    begin_ = started_ + in_seconds(chosen_.warm);
    end_ = begin_ + (chosen_.most > 0 ? in_seconds(3600) : in_seconds(chosen_.seconds));
    phase_ = phase::warming;
    for (std::size_t i = 0; i < chosen_.connections; ++i) {
        if (chosen_.rate > 0)
            free_.push_back(&all_[i]);
        else
            start(all_[i], started_);
    }
    for (;;) {
        const auto now = clock::now();
        if (phase_ == phase::warming && now >= begin_)
            begin_measuring(now);
        if (now >= end_) {
            if (chosen_.rate > 0)
                start_what_is_due(end_); // requests that fell due while this thread did not run are late, not dropped
            break;
        }
        if (chosen_.most > 0 && result_.requests >= chosen_.most)
            break;
        if (has_failed())
            break;
        auto until = phase_ == phase::warming ? begin_ : end_;
        if (chosen_.rate > 0) {
            start_what_is_due(now);
            until = std::min(until, started_ + in_seconds(static_cast<double>(scheduled_) / chosen_.rate));
        }
        wait_until(until);
    }
    end_measuring(clock::now());
    return result_;
}

void client::start_what_is_due(clock::time_point now)
{
    for (;; ++scheduled_) {
        const auto due = started_ + in_seconds(static_cast<double>(scheduled_) / chosen_.rate);
        if (due > now || due >= end_)
            return;
        if (free_.empty()) {
            backlog_.push_back(due);
            continue;
        }
        auto* one = free_.front();
        free_.pop_front();
        start(*one, due);
    }
}

void client::begin_measuring(clock::time_point now)
{
    phase_ = phase::measuring;
    if (chosen_.rate == 0) { // the open loop keeps its schedule
        end_ += now - begin_;
        begin_ = now;
    }
    for (auto& one : all_)
        one.coming.take_bytes();
    result_ = {};
    for (const auto process : chosen_.watched)
        cpu_before_.push_back(cpu_nanoseconds(process));
}

void client::end_measuring(clock::time_point now)
{
    for (std::size_t i = 0; i < cpu_before_.size(); ++i)
        result_.cpu_nanoseconds.push_back(cpu_nanoseconds(chosen_.watched[i]) - cpu_before_[i]);
    for (auto& one : all_)
        result_.bytes += one.coming.take_bytes();
    result_.seconds = std::chrono::duration<double>(now - begin_).count();
    phase_ = phase::draining;
    if (chosen_.rate > 0)
        drain(now);
}

// Open loop: waits for the requests that are still under way. A request without an answer after two seconds counts with
// the age that it has reached.
void client::drain(clock::time_point now)
{
    const auto deadline = now + 2s;
    for (; now < deadline && (count_busy() > 0 || !backlog_.empty()); now = clock::now())
        wait_until(deadline);
    const auto give_up = [&](clock::time_point due) {
        if (due < begin_)
            return;
        ++result_.unfinished;
        result_.latency.add(nanoseconds(now - due));
    };
    for (auto& one : all_) {
        if (one.busy)
            give_up(one.due);
    }
    std::for_each(backlog_.begin(), backlog_.end(), give_up);
}

std::size_t client::count_busy() const
{
    return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), [](auto& one) { return one.busy; }));
}

void client::start(connection& one, clock::time_point due)
{
    requests_.write_next(one.out);
    one.sent = 0;
    one.due = due;
    one.busy = true;
    one.coming.reset();
    if (phase_ == phase::measuring && chosen_.rate > 0)
        result_.lateness.add(nanoseconds(clock::now() - due));
    if (one.fd < 0)
        open(one);
    else
        flush(one);
}

void client::open(connection& one)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(chosen_.port);
    one.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (one.fd < 0)
        throw std::runtime_error("no more sockets: raise the limit of open files");
    const int on = 1;
    ::setsockopt(one.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::connect(one.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    if (chosen_.rate > 0) {
        // On one machine the connection is established by now; if not, an event reports it later. In the closed loop
        // requests wait for that event and leave in batches: a wake-up for each one would cost the proxy more CPU.
        const auto done = ::send(one.fd, one.out.data(), one.out.size(), MSG_NOSIGNAL);
        one.sent = done > 0 ? static_cast<std::size_t>(done) : 0;
    }
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.ptr = &one;
    ::epoll_ctl(set_, EPOLL_CTL_ADD, one.fd, &event);
}

void client::flush(connection& one)
{
    while (one.sent < one.out.size()) {
        const auto done = ::send(one.fd, one.out.data() + one.sent, one.out.size() - one.sent, MSG_NOSIGNAL);
        if (done < 0) {
            if (errno != EAGAIN)
                fail(one);
            return;
        }
        one.sent += static_cast<std::size_t>(done);
    }
}

void client::on_event(connection& one)
{
    if (one.fd < 0)
        return;
    if (!one.busy) { // no request is under way: the server closed the connection
        close(one);
        return;
    }
    if (one.sent < one.out.size()) {
        flush(one);
        if (!one.busy)
            return;
    }
    switch (one.coming.read(one.fd)) {
    case answer::state::incomplete:
        return;
    case answer::state::complete:
        return finish(one);
    case answer::state::broken:
        return fail(one);
    }
}

void client::finish(connection& one)
{
    const auto now = clock::now();
    const bool counts = phase_ == phase::measuring || (phase_ == phase::draining && chosen_.rate > 0);
    if (phase_ == phase::measuring) {
        ++result_.requests;
        result_.bytes += one.coming.take_bytes();
    }
    if (counts && (chosen_.rate == 0 || one.due >= begin_)) {
        result_.latency.add(nanoseconds(now - one.due));
        ++result_.statuses[one.coming.status()];
    }
    one.busy = false;
    if (chosen_.close || one.coming.closes())
        close(one);
    if (phase_ == phase::priming) {
        ++primed_;
        return;
    }
    if (one.silent || (phase_ == phase::draining && chosen_.rate == 0))
        return;
    if (chosen_.rate == 0)
        return start(one, now);
    start_next(one);
}

// Open loop: sends the request that has waited longest for a connection.
void client::start_next(connection& one)
{
    if (backlog_.empty())
        return free_.push_back(&one);
    const auto due = backlog_.front();
    backlog_.pop_front();
    start(one, due);
}

// A connection that breaks under a request is an error. The request is not repeated.
void client::fail(connection& one)
{
    ++result_.errors;
    close(one);
    one.busy = false;
    if (chosen_.rate > 0 && phase_ != phase::priming)
        return start_next(one);
    if (phase_ != phase::draining && !has_failed())
        start(one, clock::now());
}

void client::close(connection& one)
{
    if (one.fd >= 0)
        ::close(one.fd);
    one.fd = -1;
}

// Returns after an event, or at that time.
void client::wait_until(clock::time_point when)
{
    if (!beside_) {
        const auto left = static_cast<std::int64_t>(nanoseconds(when - clock::now()));
        take_events({left / 1'000'000'000, left % 1'000'000'000});
        return;
    }
    for (;;) {
        const bool served = beside_();
        if (take_events({}) > 0 || clock::now() >= when)
            return;
        if (!served)
            ::sched_yield(); // to Redis, which is on the same core on a machine with two
    }
}

int client::take_events(const timespec& timeout)
{
    epoll_event events[256];
    const int ready = ::epoll_pwait2(set_, events, 256, &timeout, nullptr);
    for (int i = 0; i < ready; ++i)
        on_event(*static_cast<connection*>(events[i].data.ptr));
    return ready;
}

} // namespace load
