#include "bench/load/client.hpp"

#include "bench/load/cpu_time.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdexcept>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

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

std::optional<missing_time> watch_cores(const options& chosen)
{
    if (chosen.filling.empty())
        return std::nullopt;
    return missing_time(chosen.cores, chosen.filling);
}

} // namespace

client::client(const options& chosen, std::function<bool()> beside)
    : chosen_(chosen), beside_(std::move(beside)), requests_(chosen), missing_(watch_cores(chosen)),
      set_(::epoll_create1(0)), all_(chosen.connections + chosen.idle)
{
    keep_stamping();
    ::prctl(PR_SET_TIMERSLACK, 1UL); // a request that is due leaves then, not 50 µs later
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
    const auto from = chosen_.close ? chosen_.connections : 0; // with a connection a request there is nothing to keep
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
    if (missing_)
        calm_.look_at_cores(started_, missing_->read());
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
                start_what_is_due(end_); // what fell due while we were kept from looking is late, not forgotten
            break;
        }
        if (chosen_.most > 0 && result_.requests >= chosen_.most)
            break;
        if (result_.errors > 1000 + result_.requests / 10)
            break; // nothing worth measuring
        auto until = phase_ == phase::warming ? begin_ : end_;
        if (chosen_.rate > 0) {
            start_what_is_due(now);
            until = std::min(until, started_ + in_seconds(static_cast<double>(scheduled_) / chosen_.rate));
        }
        wait_until(std::min(until, look_at_cores(now)));
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
    if (chosen_.rate == 0) { // the times of an open loop are its schedule's
        end_ += now - begin_;
        begin_ = now;
    }
    for (auto& one : all_)
        one.coming.take_bytes();
    result_ = {};
    for (const auto process : chosen_.watched)
        cpu_before_.push_back(cpu_nanoseconds(process));
}

// Open loop: what is still under way is waited for, and what never comes is counted with the age that it has reached.
void client::end_measuring(clock::time_point now)
{
    for (std::size_t i = 0; i < cpu_before_.size(); ++i)
        result_.cpu_nanoseconds.push_back(cpu_nanoseconds(chosen_.watched[i]) - cpu_before_[i]);
    for (auto& one : all_)
        result_.bytes += one.coming.take_bytes();
    result_.seconds = std::chrono::duration<double>(now - begin_).count();
    phase_ = phase::draining;
    if (chosen_.rate == 0)
        return;
    const auto patience = now + 2s;
    for (; now < patience && (count_busy() > 0 || !backlog_.empty()); now = clock::now())
        wait_until(std::min(patience, look_at_cores(now)));
    const auto give_up = [&](clock::time_point due) {
        if (due < begin_)
            return;
        ++result_.unfinished;
        add_latency(due, {now - due, now - due});
    };
    for (auto& one : all_) {
        if (one.busy)
            give_up(one.times.due);
    }
    std::for_each(backlog_.begin(), backlog_.end(), give_up);
    if (missing_) {
        calm_.look_at_cores(now, missing_->read());
        result_.calm = calm_.settle();
    }
}

void client::add_latency(clock::time_point due, const latency& took)
{
    result_.took.add(took);
    if (missing_)
        calm_.add(due, took);
}

// Where it is time to. Returns when it will be again.
clock::time_point client::look_at_cores(clock::time_point now)
{
    if (!missing_)
        return clock::time_point::max();
    if (now >= calm_.next_look())
        calm_.look_at_cores(clock::now(), missing_->read());
    return calm_.next_look();
}

std::size_t client::count_busy() const
{
    return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), [](auto& one) { return one.busy; }));
}

void client::start(connection& one, clock::time_point due)
{
    requests_.write_next(one.out);
    one.sent = 0;
    one.times.due = due;
    one.times.sent = clock::now();
    one.busy = true;
    one.coming.reset();
    if (phase_ == phase::measuring && chosen_.rate > 0)
        result_.lateness.add(nanoseconds(one.times.sent - due));
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
    ask_for_stamps(one.fd);
    one.times.sent = clock::now(); // that there was a socket to be made first is not the proxy's
    ::connect(one.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    if (chosen_.rate > 0) {
        // On this machine the connection is made by now; where not, an event will tell. In a closed loop requests wait
        // for that event and leave several at a time: whom each wakes on its own takes more CPU for it.
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
    if (!one.busy) { // nothing is awaited: the server has closed it
        close(one);
        return;
    }
    if (one.sent < one.out.size()) {
        flush(one);
        if (!one.busy)
            return;
    }
    switch (one.coming.read(one.fd)) {
    case answer::state::more:
        return;
    case answer::state::whole:
        return finish(one);
    case answer::state::broken:
        return fail(one);
    }
}

void client::finish(connection& one)
{
    const auto now = clock::now();
    one.times.read = now;
    one.times.came = now - one.coming.came().age();
    one.times.origin_took = one.coming.origin_took();
    const bool counts = phase_ == phase::measuring || (phase_ == phase::draining && chosen_.rate > 0);
    if (phase_ == phase::measuring) {
        ++result_.requests;
        result_.bytes += one.coming.take_bytes();
    }
    if (counts && (chosen_.rate == 0 || one.times.due >= begin_)) {
        add_latency(one.times.due, latency_of(one.times));
        if (!one.coming.came().is_known())
            ++result_.unstamped;
        ++result_.statuses[one.coming.status()];
    }
    one.times.freed = one.times.came;
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

// Open loop: what has waited longest for a connection.
void client::start_next(connection& one)
{
    if (backlog_.empty())
        return free_.push_back(&one);
    const auto due = backlog_.front();
    backlog_.pop_front();
    start(one, due);
}

// A connection that broke under a request is an error, whoever broke it; the request is not repeated.
void client::fail(connection& one)
{
    ++result_.errors;
    close(one);
    one.busy = false;
    one.times.freed = clock::now();
    if (phase_ == phase::priming)
        return start(one, one.times.freed);
    if (chosen_.rate > 0)
        start_next(one);
    else if (phase_ != phase::draining && result_.errors <= 1000 + result_.requests / 10)
        start(one, clock::now());
}

void client::close(connection& one)
{
    if (one.fd >= 0)
        ::close(one.fd);
    one.fd = -1;
}

void client::wait_until(clock::time_point when)
{
    if (beside_)
        return spin_until(when);
    const auto left = std::max<std::int64_t>(0, std::chrono::nanoseconds(when - clock::now()).count());
    take_events({left / 1'000'000'000, left % 1'000'000'000});
}

// Until something has happened here, or it is time.
void client::spin_until(clock::time_point when)
{
    for (;;) {
        const auto before = clock::now();
        const bool served = beside_(), taken = take_events({}) > 0;
        const auto now = clock::now();
        if (missing_ && !served && !taken)
            missing_->idled(now - before);
        if (taken || now >= when)
            return;
        if (!served)
            ::sched_yield(); // to whoever else is on this core: Redis, where there are few
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
