#include "limiter/redis/take_together.hpp"

#include "limiter/redis/client/command.hpp"

#include <algorithm>

namespace headgate::limiter::redis {

namespace {

std::array<std::uint64_t, most_usual_rules> costs_of(const chain_part& part)
{
    std::array<std::uint64_t, most_usual_rules> out;
    out.fill(1);
    std::copy(part.costs.begin(), part.costs.end(), out.begin());
    return out;
}

} // namespace

take_together::take_together(std::shared_ptr<caller> by, const script& take_each)
    : caller_(std::move(by)), script_(take_each), loop_(caller_->loop())
{}

take_together::~take_together() { loop_.forget(*this); }

bool take_together::may_join(const batch& b, const question& q)
{
    return b.rules == q.part_.group && b.began == q.began_ && b.questions.size() < most_keys &&
           b.costs == costs_of(q.part_);
}

take_together::batch& take_together::open_for(const question& q)
{
    if (spare_.empty()) {
        open_.push_back(std::make_unique<batch>());
    } else {
        open_.push_back(std::move(spare_.back()));
        spare_.pop_back();
    }
    auto& made = *open_.back();
    made.slot = q.slot_;
    made.began = q.began_;
    made.rules = q.part_.group;
    made.costs = costs_of(q.part_);
    made.key_words.clear();
    made.questions.clear();
    write_each_argument(made.argument, q.part_, q.how_);
    return made;
}

void take_together::join(question& q)
{
    // The newest batch first: older ones may be full. On a cluster two keys of a migrating slot may be on two nodes,
    // and both nodes would refuse the call, so each key gets a separate call.
    const auto from = caller_->links().spreads_keys() ? open_.rend() : open_.rbegin();
    const auto open = std::find_if(from, open_.rend(), [&](const auto& each) { return may_join(*each, q); });
    auto& in = open != open_.rend() ? **open : open_for(q);
    append_word(in.key_words, q.part_.key);
    in.questions.push_back(&q);
    // The end of the turn runs in reverse order: first the batches become commands, then the link sends them.
    caller_->links().route_to(q.slot_).to->send_soon();
    loop_.at_turn_end(*this);
}

// A question that completes at once may be the last owner of the store: this object must survive it.
void take_together::on_turn_end()
{
    const auto keep = shared_from_this();
    leaving_.swap(open_);
    for (auto& each : leaving_) {
        auto& last = *each->questions.back();
        last.led_ = std::move(each);
        last.resumed_.notify();
    }
    leaving_.clear();
}

task<void> take_together::call_for_all(question& last)
{
    const auto keep = shared_from_this();
    auto led = std::move(last.led_);
    const auto write = [&](std::string& out, call_by by) {
        append_take_each(out, led->questions.size(), led->key_words, led->argument, by, script_);
    };
    link::answer got;
    const auto failed = co_await caller_->call(led->slot, led->began, write, got, led->questions.size());
    deliver(*led, failed, got);
    spare_.push_back(std::move(led));
}

// Resumes the other questions inside this call, in their order; they may join a new batch. The reply stays valid until
// the link reads on.
void take_together::deliver(const batch& called, trouble failed, const link::answer& got)
{
    if (failed == trouble::none && got.value().size() != called.questions.size())
        failed = trouble::malformed;
    if (failed == trouble::none) {
        auto next = called.questions.begin();
        got.value().for_each([&](const reply& item) { (*next++)->reply_text = item.text(); });
    }
    for (auto* const each : called.questions)
        each->failed = failed;
    for (std::size_t i = 0; i + 1 < called.questions.size(); ++i)
        called.questions[i]->resumed_.notify(); // the last one makes this call
}

} // namespace headgate::limiter::redis
