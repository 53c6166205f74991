// A real redis-server for a test. It writes no files but its socket, in a temporary folder. A sentinel is one too, with
// a configuration file that it rewrites.
#pragma once

#include <filesystem>
#include <string>
#include <sys/types.h>
#include <vector>

namespace headgate::testing {

class redis_server
{
public:
    enum class speaks
    {
        plain_text,
        tls // the options must have certificates
    };
    // Starts it and waits until it answers. `options` are those of redis-server: {"--maxmemory", "10mb"}. Throws when
    // it does not start.
    explicit redis_server(std::vector<std::string> options = {}, speaks on_port = speaks::plain_text);
    struct as_sentinel
    {
        std::string lines; // of its configuration file: "sentinel monitor ..."
    };
    enum class when
    {
        now,
        later // start() starts it
    };
    explicit redis_server(const as_sentinel& what, when starts = when::now);
    ~redis_server();
    redis_server(const redis_server&) = delete;
    redis_server& operator=(const redis_server&) = delete;

    std::string socket_path() const { return folder_ / "redis.sock"; }
    int port() const { return port_; } // the only port, on 127.0.0.1; the Unix socket is always plain text
    pid_t pid() const { return pid_; }

    // All data is lost after a stop, as after a crash.
    void start();
    void stop(); // SIGKILL
    // Pauses it with SIGSTOP: it keeps its connections and does not answer until it is continued.
    void pause();
    void resume();

private:
    bool answers() const;
    std::vector<std::string> command_line() const;

    std::filesystem::path folder_;
    std::vector<std::string> options_;
    const speaks on_port_ = speaks::plain_text;
    bool is_sentinel_ = false;
    int port_ = 0;
    pid_t pid_ = -1;
};

} // namespace headgate::testing
