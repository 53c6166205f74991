#include "limiter/redis/client/reply.hpp"

#include <hiredis/hiredis.h>

#include <new>
#include <utility>

namespace headgate::limiter::redis {

// The functions that hiredis calls while it reads. An object is the number of its node, from 1, because null means
// failure.
struct reply_builder
{
    static reply_reader& reader_of(const redisReadTask* task) { return *static_cast<reply_reader*>(task->privdata); }
    static std::size_t index_of(void* object) { return reinterpret_cast<std::uintptr_t>(object) - 1; }

    static void* add(const redisReadTask* task, reply_reader::node made)
    {
        auto& in = reader_of(task);
        made.parent = task->parent ? index_of(task->parent->obj) : reply_reader::no_parent;
        in.nodes_.push_back(made);
        return reinterpret_cast<void*>( // NOLINT(performance-no-int-to-ptr): it is only a number
            static_cast<std::uintptr_t>(in.nodes_.size()));
    }
    static void* make_text(const redisReadTask* task, char* at, std::size_t size)
    {
        auto& bytes = reader_of(task).bytes_;
        const auto kind = task->type == REDIS_REPLY_ERROR    ? reply::kind::error
                          : task->type == REDIS_REPLY_STATUS ? reply::kind::status
                                                             : reply::kind::text;
        const auto from = bytes.size();
        bytes.append(at, size);
        return add(task, {.kind = kind, .from = from, .size = size});
    }
    static void* make_array(const redisReadTask* task, int items)
    {
        return add(task, {.kind = reply::kind::array, .number = items});
    }
    static void* make_number(const redisReadTask* task, long long number)
    {
        return add(task, {.kind = reply::kind::integer, .number = number});
    }
    static void* make_nil(const redisReadTask* task) { return add(task, {}); }
    static void forget(void*) {}

    // Not const because hiredis's interface requires it; hiredis does not change it.
    static redisReplyObjectFunctions* functions()
    {
        static redisReplyObjectFunctions table{make_text, make_array, make_number, make_nil, forget};
        return &table;
    }
};

reply_reader::reply_reader() : reader_(redisReaderCreateWithFunctions(reply_builder::functions()))
{
    if (!reader_)
        throw std::bad_alloc();
    reader_->privdata = this;
}

reply_reader::~reply_reader() { redisReaderFree(reader_); }

void reply_reader::break_off(std::string_view why)
{
    broken_ = true;
    why_ = why;
}

void reply_reader::feed(std::string_view bytes)
{
    if (broken_)
        return;
    if (redisReaderFeed(reader_, bytes.data(), bytes.size()) != REDIS_OK)
        return break_off(reader_->errstr);
    unread_ += bytes.size();
}

bool reply_reader::next()
{
    if (broken_)
        return false;
    if (std::exchange(whole_, false)) {
        nodes_.clear();
        bytes_.clear();
    }
    void* object = nullptr;
    if (redisReaderGetReply(reader_, &object) != REDIS_OK) {
        break_off(reader_->errstr);
        return false;
    }
    whole_ = object != nullptr;
    if (whole_)
        unread_ = 0;
    else if (unread_ > most_bytes)
        break_off("a reply is larger than any expected one");
    return whole_;
}

reply::kind reply::what() const { return of_->nodes_[at_].kind; }

long long reply::number() const { return is(kind::integer) ? of_->nodes_[at_].number : 0; }

std::string_view reply::text() const
{
    const auto& n = of_->nodes_[at_];
    return std::string_view(of_->bytes_).substr(n.from, n.size);
}

std::size_t reply::size() const { return is(kind::array) ? static_cast<std::size_t>(of_->nodes_[at_].number) : 0; }

reply reply::operator[](std::size_t item) const
{
    auto i = at_ + 1;
    for (;; ++i) {
        if (of_->nodes_[i].parent == at_ && item-- == 0)
            return {*of_, i};
    }
}

} // namespace headgate::limiter::redis
