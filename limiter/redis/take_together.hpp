// Puts together what the requests of one turn ask about usual chains: those under the same rules, at the same costs,
// are one call of take_each.lua, which decides each by itself. It leaves at the end of the turn, when it would have
// left anyway, and all who are in it have as long for their answer as they would have had alone.
#pragma once

#include "limiter/redis/caller.hpp"
#include "limiter/redis/take_each_call.hpp"

#include <array>
#include <coroutine>
#include <memory>
#include <string>
#include <vector>

namespace headgate::limiter::redis {

class take_together final : public std::enable_shared_from_this<take_together>, private turn_end
{
public:
    // A call takes Redis as long as its keys do one after the other: more would gain little and hold up others.
    static constexpr std::size_t most_keys = 32;

    struct answer
    {
        trouble failed = trouble::none;
        std::string_view said; // for read_take, until the next suspension
    };

    // Made by std::make_shared: what it has asked keeps it.
    take_together(std::shared_ptr<caller> by, const script& take_each);
    ~take_together();

    // co_await together.take(slot, began, part, how): one key, of a chain that is usual.
    auto take(std::uint16_t slot, steady_time began, const asked_part& part, const take_options& how)
    {
        return question(*this, slot, began, part, how);
    }

private:
    // Lives in the frame of who waits, and so does what it views.
    class question
    {
    public:
        question(take_together& to, std::uint16_t slot, steady_time began, const asked_part& part,
                 const take_options& how)
            : to_(to), slot_(slot), began_(began), part_(part), how_(how)
        {}
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiting)
        {
            waiting_ = waiting;
            to_.join(*this);
        }
        answer await_resume() const noexcept { return got_; }

    private:
        friend class take_together;
        take_together& to_;
        std::uint16_t slot_;
        steady_time began_;
        const asked_part& part_;
        const take_options& how_;
        answer got_;
        std::coroutine_handle<> waiting_;
    };
    // One call. Who is in it waits, so that the rules they all have are there too.
    struct batch
    {
        std::uint16_t slot = 0;
        steady_time began{};
        const packed_group* rules = nullptr;
        std::array<std::uint64_t, most_usual_rules> costs{};
        std::string argument, key_words;
        std::vector<question*> who;
    };

    static bool may_join(const batch& b, const question& who);
    batch& open_for(const question& who);
    void join(question& who);
    void on_turn_end() override;
    static task<void> ask(std::shared_ptr<take_together> self, std::unique_ptr<batch> what);
    static void tell(const batch& asked, trouble failed, const link::answer& got);

    std::shared_ptr<caller> caller_;
    const script& script_;
    reactor& reactor_;
    std::vector<std::unique_ptr<batch>> open_, leaving_, spare_;
};

} // namespace headgate::limiter::redis
