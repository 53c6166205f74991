#include "tests/support/redis_server.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <netinet/in.h>
#include <random>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace headgate::testing {

namespace {

using namespace std::chrono_literals;

bool is_free(int port)
{
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool is = s >= 0 && bind(s, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
    if (s >= 0)
        close(s);
    return is;
}

// Returns a port that is free now. It is below the ports that the kernel gives to connections, because servers that
// know each other make many connections before the last of them listens; and a cluster's second port, 10000 above, is
// valid.
int free_port()
{
    std::random_device random;
    for (int i = 0; i < 100; ++i) {
        const auto port = 12'000 + static_cast<int>(random() % 10'000);
        if (is_free(port) && is_free(port + 10'000))
            return port;
    }
    throw std::runtime_error("no port for redis-server");
}

std::filesystem::path new_folder()
{
    auto name = (std::filesystem::temp_directory_path() / "headgate-redis-XXXXXX").string();
    if (!mkdtemp(name.data()))
        throw std::runtime_error("no folder for redis-server");
    return name;
}

} // namespace

redis_server::redis_server(std::vector<std::string> options, speaks on_port)
    : folder_(new_folder()), options_(std::move(options)), on_port_(on_port)
{
    port_ = free_port();
    try {
        start();
    } catch (...) {
        std::filesystem::remove_all(folder_);
        throw;
    }
}

redis_server::redis_server(const as_sentinel& what, when starts) : folder_(new_folder()), is_sentinel_(true)
{
    port_ = free_port();
    std::ofstream(folder_ / "conf") << "port " << port_ << "\nbind 127.0.0.1\nunixsocket " << socket_path() << "\ndir "
                                    << folder_.string() << "\n"
                                    << what.lines;
    if (starts == when::later)
        return;
    try {
        start();
    } catch (...) {
        std::filesystem::remove_all(folder_);
        throw;
    }
}

redis_server::~redis_server()
{
    stop();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

std::vector<std::string> redis_server::command_line() const
{
    if (is_sentinel_)
        return {"redis-server", folder_ / "conf", "--sentinel"};
    const bool is_plain = on_port_ == speaks::plain_text;
    std::vector<std::string> words{"redis-server", "--port",     std::to_string(is_plain ? port_ : 0),
                                   "--bind",       "127.0.0.1",  "--unixsocket",
                                   socket_path(),  "--dir",      folder_,
                                   "--save",       "",           "--appendonly",
                                   "no",           "--loglevel", "warning"};
    if (!is_plain)
        words.insert(words.end(), {"--tls-port", std::to_string(port_)});
    words.insert(words.end(), options_.begin(), options_.end());
    return words;
}

void redis_server::start()
{
    if (pid_ > 0)
        return;
    auto words = command_line();
    std::vector<char*> arguments;
    for (auto& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const auto log = (folder_ / "log").string();
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0)
        throw std::runtime_error("no process for redis-server");
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // also when a test crashes
        if (getppid() != parent)
            _exit(1);
        const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(out, 1);
        dup2(out, 2);
        execvp(arguments[0], arguments.data());
        _exit(127);
    }
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!answers()) {
        int status = 0;
        if (waitpid(pid_, &status, WNOHANG) == pid_) {
            pid_ = -1;
            throw std::runtime_error("redis-server ended at once; is it installed? script/setup");
        }
        if (std::chrono::steady_clock::now() > deadline) {
            stop();
            throw std::runtime_error("redis-server does not answer");
        }
        std::this_thread::sleep_for(5ms);
    }
}

void redis_server::stop()
{
    if (pid_ <= 0)
        return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
}

void redis_server::pause() { kill(pid_, SIGSTOP); }
void redis_server::resume() { kill(pid_, SIGCONT); }

bool redis_server::answers() const
{
    const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, socket_path().c_str(), sizeof at.sun_path - 1);
    const timeval patience{1, 0};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char reply[7] = {};
    const bool good = connect(s, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 && write(s, "PING\r\n", 6) == 6 &&
                      read(s, reply, sizeof reply) == 7 &&
                      (std::memcmp(reply, "+PONG\r\n", 7) == 0 || std::memcmp(reply, "-NOAUTH", 7) == 0);
    close(s);
    return good;
}

} // namespace headgate::testing
