// A log that tests can wait for, and the admin listener of a running gateway.
#pragma once

#include "tests/gateway/support.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace headgate::tests {

// A temporary folder that is deleted after the test.
class temporary_folder
{
public:
    temporary_folder();
    ~temporary_folder();
    std::string file(const std::string& name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

// A FIFO as the access log: reading a line waits until the gateway has written it.
class log_pipe
{
public:
    log_pipe();
    const std::string& path() const { return path_; }
    std::string next_line();          // without its line end; empty after the time limit
    std::string take_what_is_there(); // does not wait
    void shrink();                    // to the smallest size that the kernel allows

private:
    temporary_folder folder_;
    std::string path_;
    file_descriptor fd_;
    void read_what_is_there();
    std::string pending_;
    std::size_t used_ = 0; // of pending_
};

// Collects the lines of the operational log, which then go nowhere else. To be made before the gateway.
class captured_log
{
public:
    captured_log();
    ~captured_log();
    captured_log(const captured_log&) = delete;
    std::string text() const;
    // Waits until a line contains `what`; returns the whole log, also after the time limit.
    std::string wait_for(const std::string& what) const;

private:
    class sink;
    std::shared_ptr<sink> sink_;
    std::shared_ptr<void> usual_; // the logger before
};

// Waits until the file has this many lines; returns the file's content, also after the time limit.
std::string wait_for_lines(const std::string& file, std::size_t lines);

// An echo gateway: /open/* unlimited, /limited/* two requests per minute for each X-API-Key, a dead upstream under
// /dead.
std::string echo_configuration(const std::string& log = "", const std::string& more = "");

config::gateway_config load_configuration(const std::string& yaml);

std::string ask_admin(running_gateway& gateway, const std::string& path, const std::string& more_fields = "");
// Returns the value of one series of /metrics; -1 when there is none.
double metric(running_gateway& gateway, const std::string& series);
// Waits until the value is `expected`, because a request is counted after its answer is sent. Returns the last value.
double metric_at_last(running_gateway& gateway, const std::string& series, double expected);

} // namespace headgate::tests
