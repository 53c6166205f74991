#include "limiter/redis/take_together.hpp"

#include "limiter/redis/client/command.hpp"

#include <algorithm>

namespace headgate::limiter::redis {

namespace {

std::array<std::uint64_t, most_usual_rules> costs_of(const asked_part& part)
{
    std::array<std::uint64_t, most_usual_rules> out;
    out.fill(1);
    std::copy(part.costs.begin(), part.costs.end(), out.begin());
    return out;
}

} // namespace

take_together::take_together(std::shared_ptr<caller> by, const script& take_each)
    : caller_(std::move(by)), script_(take_each), reactor_(caller_->links().route_to(0).to->loop())
{}

take_together::~take_together() { reactor_.forget(*this); }

bool take_together::may_join(const batch& b, const question& who)
{
    return b.rules == who.part_.group && b.began == who.began_ && b.who.size() < most_keys &&
           b.costs == costs_of(who.part_);
}

take_together::batch& take_together::open_for(const question& who)
{
    if (spare_.empty()) {
        open_.push_back(std::make_unique<batch>());
    } else {
        open_.push_back(std::move(spare_.back()));
        spare_.pop_back();
    }
    auto& made = *open_.back();
    made.slot = who.slot_;
    made.began = who.began_;
    made.rules = who.part_.group;
    made.costs = costs_of(who.part_);
    made.key_words.clear();
    made.who.clear();
    write_each_argument(made.argument, who.part_, who.how_);
    return made;
}

void take_together::join(question& who)
{
    // The newest one first: an older one may be full. On a cluster two keys of a slot that moves may be on two nodes,
    // who would both decline.
    const auto from = caller_->links().spreads_keys() ? open_.rend() : open_.rbegin();
    const auto open = std::find_if(from, open_.rend(), [&](const auto& each) { return may_join(*each, who); });
    auto& in = open != open_.rend() ? **open : open_for(who);
    append_word(in.key_words, who.part_.key);
    in.who.push_back(&who);
    // Who asked last for the end of the turn comes first there: what is written then leaves with the rest.
    caller_->links().route_to(who.slot_).to->send_soon();
    reactor_.at_turn_end(*this);
}

// Whoever is told at once that it cannot be asked may ask for something else, and may be the last who needs the store.
void take_together::on_turn_end()
{
    const auto keep = shared_from_this();
    leaving_.swap(open_);
    for (auto& each : leaving_)
        start(ask(shared_from_this(), std::move(each)));
    leaving_.clear();
}

task<void> take_together::ask(std::shared_ptr<take_together> self, std::unique_ptr<batch> what)
{
    const auto write = [&](std::string& out, call_by by) {
        append_take_each(out, what->who.size(), what->key_words, what->argument, by, self->script_);
    };
    link::answer got;
    const auto failed = co_await self->caller_->call(what->slot, what->began, write, got, what->who.size());
    if (what->who.size() > 1)
        self->reactor_.expect_several();
    tell(*what, failed, got);
    self->spare_.push_back(std::move(what));
}

// Each goes on at once, inside this call, and may ask again; the reply stays as long as we have not returned.
void take_together::tell(const batch& asked, trouble failed, const link::answer& got)
{
    const auto go_on = [](question& who, const answer& with) {
        who.got_ = with;
        who.waiting_.resume();
    };
    if (failed == trouble::none && got.said().size() != asked.who.size())
        failed = trouble::malformed;
    if (failed != trouble::none) {
        for (auto* const who : asked.who)
            go_on(*who, {failed, {}});
        return;
    }
    auto next = asked.who.begin();
    got.said().for_each([&](const reply& item) { go_on(**next++, {trouble::none, item.text()}); });
}

} // namespace headgate::limiter::redis
