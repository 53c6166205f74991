// Deadlines without a timer per request: one intrusive list per length of time, in the order of arming, so that only
// the front of each list has to be checked. One coarse timer per worker sweeps the lists. Arming and disarming are a
// few stores.
#pragma once

#include "limiter/io/asio.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

namespace headgate {

class deadline
{
public:
    deadline() = default;
    deadline(const deadline&) = delete;
    deadline& operator=(const deadline&) = delete;
    bool is_armed() const { return next_ != nullptr; }
    steady_time armed_at() const { return armed_at_; }
    void disarm()
    {
        if (!next_)
            return;
        previous_->next_ = next_;
        next_->previous_ = previous_;
        next_ = previous_ = nullptr;
    }

protected:
    // Called by the sweep. The deadline is already disarmed.
    virtual void on_deadline() = 0;
    virtual ~deadline() { disarm(); }

private:
    friend class deadline_list;
    deadline* next_ = nullptr;
    deadline* previous_ = nullptr;
    steady_time armed_at_{};
};

class deadline_list
{
public:
    explicit deadline_list(std::chrono::steady_clock::duration after) : after_(after)
    {
        ends_.next_ = ends_.previous_ = &ends_;
    }
    ~deadline_list()
    {
        while (ends_.next_ != &ends_)
            ends_.next_->disarm();
        ends_.next_ = ends_.previous_ = nullptr;
    }
    std::chrono::steady_clock::duration after() const { return after_; }

    void arm(deadline& d, steady_time now)
    {
        d.disarm();
        d.armed_at_ = now;
        d.previous_ = ends_.previous_;
        d.next_ = &ends_;
        ends_.previous_->next_ = &d;
        ends_.previous_ = &d;
    }
    void sweep(steady_time now)
    {
        while (ends_.next_ != &ends_ && ends_.next_->armed_at_ + after_ <= now) {
            auto& due = *ends_.next_;
            due.disarm();
            due.on_deadline();
        }
    }

private:
    struct ends : deadline
    {
        void on_deadline() override {}
    };
    std::chrono::steady_clock::duration after_;
    ends ends_;
};

// The lists of one worker, one for each length of time that its configuration uses.
class deadlines
{
public:
    // Returns the list for this length of time. It is valid as long as the worker.
    deadline_list& list_for(std::chrono::steady_clock::duration after)
    {
        for (auto& list : lists_) {
            if (list->after() == after)
                return *list;
        }
        return *lists_.emplace_back(std::make_unique<deadline_list>(after));
    }
    void sweep(steady_time now)
    {
        for (std::size_t i = 0; i < lists_.size(); ++i)
            lists_[i]->sweep(now);
    }

private:
    std::vector<std::unique_ptr<deadline_list>> lists_;
};

} // namespace headgate
