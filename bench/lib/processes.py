"""Starts processes, and ends them and removes their files however this process ends.

In three ways: Group.close ends all in order; the kernel kills each child when its parent dies (PR_SET_PDEATHSIG); and a keeper, a forked
process that waits until the pipe from its parent closes, kills what is left of every process group and removes the folder, also after
kill -9.
"""
import contextlib
import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class Cores:
    """Which core each program runs on: the proxy alone on one core, the others on other cores as far as there are any."""

    def __init__(self):
        cores = sorted(os.sched_getaffinity(0))
        self.proxy = {cores[0]}
        self.load = {cores[1 % len(cores)]}
        self.origin = {cores[2]} if len(cores) >= 4 else self.load
        self.redis = {cores[3]} if len(cores) >= 4 else self.load
        self.pair = {cores[0], cores[4]} if len(cores) >= 5 else set(cores)  # for a gateway with two workers

    def described(self):
        def text(cores):
            return "+".join(map(str, sorted(cores)))
        return f"proxy on core {text(self.proxy)}, load on {text(self.load)}, origin on {text(self.origin)}, Redis on {text(self.redis)}"


class Ended(Exception):
    """A signal asked this process to stop."""

    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number


def end_on_signals():
    """The first signal unwinds the stack; further signals are ignored, so that they do not interrupt the clean-up."""
    def stop(number, _):
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        raise Ended(number)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, stop)


class Group:
    """The processes that one run has started, and its folder of temporary files."""

    def __init__(self):
        self.running = []
        self.folder = None
        self._keeper_pipe = self._start_keeper()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _start_keeper(self):
        """The keeper knows the folder's name before the folder exists, so it removes it whenever this process dies."""
        self.folder = os.path.join(tempfile.gettempdir(), f"headgate-bench-{os.getpid()}-{random.getrandbits(32):08x}")
        reading, writing = os.pipe()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
        if os.fork() == 0:
            try:
                os.setsid()  # the keeper does not get Ctrl-C
                os.close(writing)
                _keep(reading, self.folder)
            finally:
                os._exit(0)
        os.close(reading)
        os.mkdir(self.folder)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        return writing

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as out:
            out.write(text)
        return self.path(name)

    def start(self, cores, *command, stdin=subprocess.DEVNULL, stdout=None, quiet=True):
        """Starts a process in a process group of its own, on these cores. Without `stdout` its output goes to a file in the folder."""
        parent = os.getpid()

        def prepare():
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
            if cores:
                os.sched_setaffinity(0, cores)
        signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # a process that was started is in the list
        try:
            with open(self.path(os.path.basename(command[0]) + ".log"), "ab") as log:
                process = subprocess.Popen(command, stdin=stdin, stdout=stdout or log, stderr=log if quiet else None, text=True,
                                           preexec_fn=prepare, start_new_session=True)
            self.running.append(process)
            os.write(self._keeper_pipe, f"+{process.pid}\n".encode())
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        return process

    def output(self, cores, *command, timeout=120):
        """Runs a program to its end and returns what it printed."""
        process = self.start(cores, *command, stdout=subprocess.PIPE)
        try:
            out, _ = process.communicate(timeout=timeout)
        finally:
            self.end(process)
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(command[:4])} … ended with {process.returncode}: {self.last_words(command[0])}")
        return out

    def last_words(self, program):
        """The end of a program's log, for error messages."""
        try:
            with open(self.path(os.path.basename(program) + ".log"), errors="replace") as log:
                return log.read()[-800:].strip()
        except OSError:
            return ""

    def end(self, process, patience=5):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                pass
        _kill_group(process.pid)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with contextlib.suppress(OSError):  # data that it did not read any more
                    pipe.close()
        if process in self.running:
            self.running.remove(process)
            os.write(self._keeper_pipe, f"-{process.pid}\n".encode())

    def close(self):
        for process in reversed(self.running):
            if process.poll() is None:
                process.terminate()
        for process in list(self.running):
            self.end(process, patience=1)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._keeper_pipe)


def _kill_group(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _keep(reading, folder):
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    groups = set()
    with os.fdopen(reading) as told:
        for line in told:  # ends when the parent closes its end or dies
            (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        _kill_group(group)
    for _ in range(50):  # a process that was just killed may still have written a file
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(0.1)


def free_port(apart=None):
    """A free port below the range of ephemeral ports. `apart`: the port this much higher is free too."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range") as told:
            below = int(told.read().split()[0])
    except OSError:
        below = 32768
    for _ in range(1000):
        port = random.randrange(10000, max(below, 11000))
        if all(_is_free(p) for p in (port, *([port + apart] if apart else []))):
            return port
    raise RuntimeError("no free port")


def _is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def wait_for_port(group, process, port, seconds=20):
    """Waits until the process listens. Raises an error with the end of its log when it exits instead."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise RuntimeError(f"{process.args[0]} does not listen on {port}: {group.last_words(process.args[0])}")


def raise_file_limit():
    """Raises the limit of open files as far as this process may."""
    import resource
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (65536, most):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(wanted, most), max(wanted, most)))
            break
        except (ValueError, OSError):
            continue
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class Progress:
    """One line on a terminal that says what is being measured; nothing when the output is not a terminal."""

    def __init__(self):
        self.shown = sys.stderr.isatty()
        self.began = time.monotonic()
        self.prefix = ""

    def tell(self, text):
        if self.shown:
            spent = int(time.monotonic() - self.began)
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write("\r\033[K" + f"[{spent // 60}:{spent % 60:02}] {self.prefix}{text}"[:width])
            sys.stderr.flush()

    def clear(self):
        if self.shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def run(program, work):
    """Runs work(group, progress) and cleans up after it. The exit status."""
    end_on_signals()
    raise_file_limit()
    progress = Progress()
    try:
        with Group() as group:
            work(group, progress)
    except Ended as why:
        progress.clear()
        print(f"{program}: stopped by {why}; all processes have ended", file=sys.stderr)
        return why.status
    except (RuntimeError, FileNotFoundError) as why:
        progress.clear()
        print(f"{program}: {why}", file=sys.stderr)
        return 1
    return 0
