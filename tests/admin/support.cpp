#include "tests/admin/support.hpp"

#include "config/load.hpp"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace headgate::tests {

namespace {

constexpr int patience_milliseconds = 30'000; // reached only by a failure

} // namespace

temporary_folder::temporary_folder()
{
    std::string name = (std::filesystem::temp_directory_path() / "headgate-test-XXXXXX").string();
    if (!::mkdtemp(name.data()))
        throw std::runtime_error("mkdtemp failed");
    path_ = name;
}

temporary_folder::~temporary_folder()
{
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

class captured_log::sink final : public spdlog::sinks::base_sink<std::mutex>
{
public:
    std::string text()
    {
        std::lock_guard guard(mutex_);
        return text_;
    }

private:
    void sink_it_(const spdlog::details::log_msg& line) override
    {
        text_.append(line.payload.data(), line.payload.size());
        text_ += '\n';
    }
    void flush_() override {}
    std::string text_;
};

captured_log::captured_log() : sink_(std::make_shared<sink>()), usual_(spdlog::default_logger())
{
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("captured", sink_));
}

captured_log::~captured_log()
{
    spdlog::set_default_logger(std::static_pointer_cast<spdlog::logger>(std::move(usual_)));
}

std::string captured_log::text() const { return sink_->text(); }

std::string captured_log::wait_for(const std::string& what) const
{
    eventually([&] { return text().find(what) != std::string::npos; });
    return text();
}

log_pipe::log_pipe() : path_(folder_.file("access"))
{
    if (::mkfifo(path_.c_str(), 0600) != 0)
        throw std::runtime_error("mkfifo failed");
    fd_ = file_descriptor(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

void log_pipe::read_what_is_there()
{
    char bytes[65536];
    for (;;) {
        const auto n = ::read(fd_.get(), bytes, sizeof bytes);
        if (n <= 0)
            return;
        pending_.append(bytes, static_cast<std::size_t>(n));
    }
}

std::string log_pipe::take_what_is_there()
{
    pending_.erase(0, std::exchange(used_, 0));
    read_what_is_there();
    return std::exchange(pending_, {});
}

std::string log_pipe::next_line()
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{patience_milliseconds};
    for (;;) {
        const auto at = pending_.find('\n', used_);
        if (at != std::string::npos) {
            const auto line = pending_.substr(used_, at - used_);
            used_ = at + 1;
            return line;
        }
        pending_.erase(0, std::exchange(used_, 0));
        if (std::chrono::steady_clock::now() >= end)
            return {};
        pollfd more{fd_.get(), POLLIN, 0};
        ::poll(&more, 1, 50);
        read_what_is_there();
    }
}

void log_pipe::shrink() { ::fcntl(fd_.get(), F_SETPIPE_SZ, 4096); }

std::string wait_for_lines(const std::string& file, std::size_t lines)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{patience_milliseconds};
    std::string text;
    do {
        std::ostringstream all;
        all << std::ifstream(file).rdbuf();
        text = all.str();
        if (static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) >= lines)
            break;
        std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < end);
    return text;
}

std::string echo_configuration(const std::string& log, const std::string& more)
{
    return "workers: 1\n"
           "listeners: [ { address: 127.0.0.1:0 } ]\n" +
           (more.find("admin:") == std::string::npos ? std::string("admin: { address: 127.0.0.1:0 }\n")
                                                     : std::string()) +
           more + (log.empty() ? "" : "log: { access: " + log + " }\n") +
           "stores: { local: { type: memory, max_keys: 10000 } }\n"
           "keys: { user: [ { header: X-API-Key } ] }\n"
           "chains:\n"
           "  api:\n"
           "    store: local\n"
           "    rules: [ { name: minute, key: user, algorithm: token_bucket, limit: 2/minute } ]\n"
           "upstreams:\n"
           "  demo: { echo: true }\n"
           "  dead: { servers: [ 127.0.0.1:1 ] }\n"
           "routes:\n"
           "  - { name: dead, match: { path: /dead }, upstream: dead }\n"
           "  - { name: limited, match: { path: /limited/* }, chains: [ api ], upstream: demo }\n"
           "  - { name: open, match: { path: /open/* }, upstream: demo }\n";
}

config::gateway_config load_configuration(const std::string& yaml)
{
    auto loaded = config::load_text(yaml, "test.yaml");
    if (!loaded.config)
        throw std::runtime_error("the test's configuration is wrong");
    return std::move(*loaded.config);
}

std::string ask_admin(running_gateway& gateway, const std::string& path, const std::string& more_fields)
{
    auto client = raw_connection::to(gateway.app().admin_port());
    client.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + more_fields + "\r\n");
    return client.read_all();
}

double metric(running_gateway& gateway, const std::string& series)
{
    std::istringstream lines(body_of(ask_admin(gateway, "/metrics")));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(series + " "))
            return std::stod(line.substr(series.size() + 1));
    }
    return -1;
}

double metric_at_last(running_gateway& gateway, const std::string& series, double expected)
{
    double shown = -1;
    eventually([&] { return (shown = metric(gateway, series)) == expected; });
    return shown;
}

} // namespace headgate::tests
