#include "limiter/memory/snapshot.hpp"

#include "limiter/memory/memory_store_parts.hpp"
#include "limiter/memory/snapshot_format.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_map>

namespace headgate::limiter {

namespace {

using namespace snapshot_format;

class descriptor
{
public:
    explicit descriptor(int fd) : fd_(fd) {}
    ~descriptor()
    {
        if (fd_ >= 0)
            ::close(fd_);
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    int get() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }

private:
    int fd_;
};

std::string failure(const char* action, const std::filesystem::path& path)
{
    return std::string(action) + " " + path.string() + ": " + std::strerror(errno);
}

bool write_all(int fd, std::string_view bytes)
{
    while (!bytes.empty()) {
        const auto n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

// Syncs the directory, so that the rename survives a power failure. A failure here risks only that.
void sync_directory(const std::filesystem::path& path)
{
    const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    const descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.is_open())
        ::fsync(fd.get());
}

// Puts an entry with its times by the wall clock. `words` is a copy of its state.
void put_entry(std::string& out, const key_table::entry& e, std::vector<std::uint64_t>& words, moment now,
               microseconds wall_ahead)
{
    words.assign(e.words.begin(), e.words.end());
    std::size_t from = 0;
    for (const auto& m : e.group->members()) {
        const auto n = e.group->words_of(m, e.header->level);
        // A step of the wall clock reaches one shard after the other. Only windows that follow it have moved by then.
        shift(m.limits, state(words).subspan(from, n),
              m.limits.limits.follows_wall_clock() ? wall_ahead : now.wall_ahead);
        from += n;
    }
    put(out, e.header->group);
    put(out, e.header->level);
    put(out, static_cast<std::uint8_t>(e.is_blocked()));
    put(out, e.is_blocked() ? std::int64_t{(e.blocked_until() + now.wall_ahead).time_since_epoch().count()}
                            : std::int64_t{0});
    put_text(out, e.key);
    put(out, static_cast<std::uint32_t>(words.size()));
    out.append(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::uint64_t));
}

std::string read_file(const std::filesystem::path& path, bool& found, std::string& error)
{
    const descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)); // a FIFO must not block
    found = fd.is_open() || errno != ENOENT;
    if (!fd.is_open()) {
        if (found)
            error = failure("cannot open", path);
        return {};
    }
    struct stat about
    {};
    if (::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
        error = path.string() + " is not a file";
        return {};
    }
    std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
    std::size_t got = 0;
    while (got < bytes.size()) {
        const auto n = ::read(fd.get(), bytes.data() + got, bytes.size() - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += static_cast<std::size_t>(n);
    }
    bytes.resize(got);
    return bytes;
}

// Returns the contents between magic and checksum, or sets `error`.
std::string_view verified(std::string_view bytes, std::string& error)
{
    if (bytes.size() < magic.size() + sizeof(std::uint64_t) || bytes.substr(0, 6) != magic.substr(0, 6)) {
        error = "the file is not a snapshot, or it is truncated";
        return {};
    }
    if (bytes.substr(0, magic.size()) != magic) {
        error = "the file was written by another version";
        return {};
    }
    checksum sum;
    sum.add(bytes.substr(0, bytes.size() - sizeof(std::uint64_t)));
    std::uint64_t written = 0;
    std::memcpy(&written, bytes.data() + bytes.size() - sizeof written, sizeof written);
    if (sum.finish() != written) {
        error = "the checksum does not match: the file is truncated or altered";
        return {};
    }
    return bytes.substr(magic.size(), bytes.size() - magic.size() - sizeof written);
}

struct stored_group
{
    group_lineage lineage;
    std::unique_ptr<rule_group> rules;
    std::shared_ptr<const rule_group> today; // null: removed from the configuration
};

// Gives the rules the time zones of today's rules: a file has none.
void use_zones_of(const rule_group* today, std::vector<rule>& rules)
{
    for (auto& r : rules) {
        for (const auto& m : today ? std::span(today->members()) : std::span<const rule_group::member>{}) {
            if (m.limits.limits.name == r.name)
                r.zone = m.limits.limits.zone;
        }
    }
}

bool read_groups(reader& in, const memory_store& store, std::unordered_map<std::uint32_t, stored_group>& out)
{
    const auto current = store.groups();
    for (auto n = in.get<std::uint32_t>(); n > 0 && !in.failed(); --n) {
        const auto id = in.get<std::uint32_t>();
        auto& group = out[id];
        group.lineage.name = in.text();
        const auto variant = in.text();
        const auto size = in.get<std::uint32_t>();
        if (size == 0 || size > max_rules_per_group)
            return false;
        std::vector<rule> rules(size);
        for (auto& r : rules) {
            if (!get_rule(in, r))
                return false;
        }
        for (const auto& candidate : current) {
            if (candidate->name() == group.lineage.name && candidate->base() == candidate.get())
                group.today = keep(candidate, candidate->variant(variant)); // of the same plan, if it still exists
        }
        use_zones_of(group.today.get(), rules);
        group.rules = std::make_unique<rule_group>(group.lineage, id, std::move(rules));
    }
    return !in.failed();
}

} // namespace

snapshot_saved save_snapshot(const memory_store& store, const std::filesystem::path& path, moment now)
{
    snapshot_saved out;
    auto unfinished = path;
    unfinished += ".tmp";
    const descriptor fd(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd.is_open()) {
        out.error = failure("cannot write", unfinished);
        return out;
    }
    checksum sum;
    std::string pending(magic);
    const auto flush = [&] {
        sum.add(pending);
        out.bytes += pending.size();
        const bool ok = write_all(fd.get(), pending);
        pending.clear();
        return ok;
    };
    put(pending, std::int64_t{now.wall().time_since_epoch().count()});
    const auto steady = store.hold_rules();
    const auto groups = store.groups();
    put(pending, static_cast<std::uint32_t>(groups.size()));
    for (const auto& group : groups) {
        put(pending, group->id());
        put_text(pending, group->name());
        put_text(pending, group->variant_name());
        put(pending, static_cast<std::uint32_t>(group->size()));
        for (const auto& m : group->members())
            put_rule(pending, m.limits.limits);
    }
    bool ok = flush();
    std::vector<std::uint64_t> words;
    // A shard is locked while its entries are copied, never while waiting for the disk.
    for (std::size_t i = 0; ok && i < store.shard_count(); ++i) {
        store.visit(i, [&](const key_table::entry& e, microseconds wall_ahead) {
            put_entry(pending, e, words, now, wall_ahead);
            ++out.keys;
        });
        ok = flush();
    }
    put(pending, end_of_entries);
    ok = ok && flush();
    std::string last;
    put(last, sum.finish());
    ok = ok && write_all(fd.get(), last) && ::fsync(fd.get()) == 0;
    if (!ok || ::rename(unfinished.c_str(), path.c_str()) != 0) {
        out.error = failure("cannot write", path);
        ::unlink(unfinished.c_str());
        return out;
    }
    out.bytes += last.size();
    sync_directory(path);
    return out;
}

snapshot_loaded load_snapshot(memory_store& store, const std::filesystem::path& path, time_point now)
{
    snapshot_loaded out;
    const auto bytes = read_file(path, out.found, out.error);
    if (!out.found || !out.error.empty())
        return out;
    reader in(verified(bytes, out.error));
    if (!out.error.empty())
        return out;
    out.written_at = time_point{microseconds{in.get<std::int64_t>()}};
    std::unordered_map<std::uint32_t, stored_group> groups;
    if (!read_groups(in, store, groups)) {
        out.error = "the rules in the file are invalid";
        return out;
    }
    std::vector<std::uint64_t> words;
    for (;;) {
        const auto id = in.get<std::uint32_t>();
        if (in.failed() || id == end_of_entries)
            break;
        const auto level = in.get<std::uint8_t>();
        const bool blocked = in.get<std::uint8_t>() != 0;
        const time_point until{microseconds{in.get<std::int64_t>()}};
        const auto key = in.text();
        const auto raw = in.take(in.get<std::uint32_t>() * sizeof(std::uint64_t));
        const auto group = groups.find(id);
        words.resize(raw.size() / sizeof(std::uint64_t));
        std::memcpy(words.data(), raw.data(), raw.size());
        if (in.failed() || key.size() > max_key_bytes || group == groups.end() || !group->second.today || level > 16 ||
            group->second.rules->words(level) != words.size()) {
            ++out.outlived;
            continue;
        }
        const memory_store::stored_entry from{group->second.rules.get(), level, words, key,
                                              blocked ? std::optional(until) : std::nullopt};
        const bool placed = store.restore(*group->second.today, from, out.written_at, now);
        ++(placed ? out.keys : out.no_room);
    }
    return out;
}

snapshot_keeper::snapshot_keeper(const memory_store& store, std::filesystem::path path, microseconds interval,
                                 clock now, report report_saved)
    : store_(store), path_(std::move(path)), interval_(interval), now_(std::move(now)),
      report_(std::move(report_saved)), thread_([this](const std::stop_token& stop) { run(stop); })
{}

snapshot_keeper::~snapshot_keeper()
{
    thread_.request_stop();
    thread_.join();
    report_(save_snapshot(store_, path_, now_()));
}

void snapshot_keeper::run(const std::stop_token& stop)
{
    std::unique_lock guard(lock_);
    while (!stop.stop_requested()) {
        if (wake_.wait_for(guard, stop, interval_, [] { return false; }) || stop.stop_requested())
            return;
        report_(save_snapshot(store_, path_, now_()));
    }
}

} // namespace headgate::limiter
