// Batches of chains: the usual chains of one turn of the event loop, under the same rules and at the same costs, are
// decided by one call of take_each.lua, each key independently. The call leaves at the end of the turn, when separate
// calls would have left too, and has the same deadline.
#pragma once

#include "limiter/io/event.hpp"
#include "limiter/redis/caller.hpp"
#include "limiter/redis/take_each_call.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace headgate::limiter::redis {

class take_together final : public std::enable_shared_from_this<take_together>, private turn_end
{
    struct batch;

public:
    // Redis works on the keys of a call one after the other: longer batches would gain little and delay other calls.
    static constexpr std::size_t most_keys = 32;

    // One key of a usual chain. It belongs to the coroutine that waits for the answer, and so does what it refers to:
    //     take_together::question joined(slot, began, part, how);
    //     together.join(joined);
    //     co_await joined.wait();
    //     if (joined.leads())
    //         co_await together.call_for_all(joined);
    class question
    {
    public:
        question(std::uint16_t slot, steady_time began, const chain_part& part, const take_options& how)
            : slot_(slot), began_(began), part_(part), how_(how)
        {}
        // Waits for the reply; for the last question of a batch, for the end of the turn.
        auto wait() { return resumed_.wait(); }
        // Returns whether this is the last question of its batch. Its coroutine makes the call for all of them, so that
        // a batch needs no separate coroutine.
        bool leads() const { return led_ != nullptr; }

        trouble failed = trouble::none;
        std::string_view reply_text; // for read_take, until the next suspension

    private:
        friend class take_together;
        const std::uint16_t slot_;
        const steady_time began_;
        const chain_part& part_;
        const take_options& how_;
        std::unique_ptr<batch> led_;
        event resumed_;
    };

    // REQUIRES: made by std::make_shared.
    take_together(std::shared_ptr<caller> by, const script& take_each);
    ~take_together();

    void join(question& q);
    // Resumes the other questions of the batch inside the call. REQUIRES: last.leads().
    task<void> call_for_all(question& last);

private:
    // One call. Its questions are waiting, so the rules that they own are alive.
    struct batch
    {
        std::uint16_t slot = 0;
        steady_time began{};
        const packed_group* rules = nullptr;
        std::array<std::uint64_t, most_usual_rules> costs{};
        std::string argument, key_words;
        std::vector<question*> questions;
    };

    static bool may_join(const batch& b, const question& q);
    batch& open_for(const question& q);
    void on_turn_end() override;
    static void deliver(const batch& called, trouble failed, const link::answer& got);

    std::shared_ptr<caller> caller_;
    const script& script_;
    event_loop& loop_;
    std::vector<std::unique_ptr<batch>> open_, leaving_, spare_;
};

} // namespace headgate::limiter::redis
