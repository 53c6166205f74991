"""A gateway process and an upstream server for tests that talk to the real program over loopback.

Every port is one the kernel chose. The gateway is ended by its own process id; upstreams are threads of the test.
"""
import contextlib
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request

LINE_END = b"\r\n"


class Gateway:
    """Runs a binary on a configuration, collects its output on stderr, and reads the kernel's data about it."""

    def __init__(self, binary, file, environment=None):
        self.lines = []
        self.process = subprocess.Popen([binary, "run", file], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        errors="replace", env={**os.environ, **(environment or {})})
        self.pid = self.process.pid
        threading.Thread(target=self._collect, daemon=True).start()
        try:
            self.port = self._announced(r"listening on 127\.0\.0\.1:(\d+)")
            self.admin_port = self._announced(r"admin on 127\.0\.0\.1:(\d+)")
        except BaseException:
            self.end()
            raise

    def _collect(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    def _announced(self, pattern):
        until = time.monotonic() + 20
        while time.monotonic() < until:
            for line in list(self.lines):
                if found := re.search(pattern, line):
                    return int(found.group(1))
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError("the gateway did not start:\n" + "\n".join(self.lines))

    def is_alive(self):
        return self.process.poll() is None

    def status_kib(self, field):
        with open(f"/proc/{self.pid}/status") as status:
            return int(re.search(rf"{field}:\s+(\d+) kB", status.read()).group(1))

    def forget_peak(self):
        """Resets VmHWM to the current resident size."""
        with open(f"/proc/{self.pid}/clear_refs", "w") as out:
            out.write("5")

    def open_files(self):
        """Descriptors but pipes: a worker keeps a few of those for long answers."""
        folder = f"/proc/{self.pid}/fd"
        links = []
        for descriptor in os.listdir(folder):
            with contextlib.suppress(OSError):  # closed meanwhile
                links.append(os.readlink(f"{folder}/{descriptor}"))
        return sum(not link.startswith("pipe:") for link in links)

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def metrics(self):
        """{'name{labels}': value} of every sample."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/metrics", timeout=20) as answer:
            text = answer.read().decode()
        samples = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, value in samples}

    def signal(self, number):
        self.process.send_signal(number)

    def terminate(self, within):
        """Returns its exit status after TERM; None when it had to be killed."""
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=within)
        except subprocess.TimeoutExpired:
            self.end()
            return None

    def end(self):
        if self.is_alive():
            self.process.kill()
        self.process.wait()


class Gone(Exception):
    """The peer closed or reset."""


class Peer:
    """One connection, read through a buffer."""

    def __init__(self, connection):
        self.socket = connection
        self.held = b""

    def send(self, *parts):
        try:
            self.socket.sendall(parts[0] if len(parts) == 1 else b"".join(parts))
        except OSError as error:
            raise Gone(str(error)) from error

    def more(self, most=65536):
        try:
            got = self.socket.recv(most)
        except OSError as error:
            raise Gone(str(error) or type(error).__name__) from error
        if not got:
            raise Gone("closed")
        return got

    def line(self):
        while (end := self.held.find(LINE_END)) < 0:
            self.held += self.more()
        line, self.held = self.held[:end], self.held[end + 2:]
        return line

    def head(self):
        """(first line, {lower-case name: value})"""
        while (end := self.held.find(b"\r\n\r\n")) < 0:
            self.held += self.more()
        head, self.held = self.held[:end], self.held[end + 4:]
        first, *lines = head.decode("latin-1").split("\r\n")
        fields = {}
        for line in lines:
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        return first, fields

    def exactly(self, length):
        """Yields pieces with `length` bytes in total."""
        while length:
            piece = self.held or self.more()
            self.held = piece[length:]
            piece = piece[:length]
            length -= len(piece)
            yield piece

    def chunks(self):
        while size := int(self.line().split(b";")[0], 16):
            yield from self.exactly(size)
            self.line()
        while self.line():
            pass

    def body(self, fields):
        if "chunked" in fields.get("transfer-encoding", ""):
            return self.chunks()
        return self.exactly(int(fields.get("content-length", 0)))

    def reset(self):
        """Closes so that the other side sees a reset."""
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        except OSError:
            pass
        self.close()

    def close(self):
        self.socket.close()


class Request:
    def __init__(self, first, fields):
        self.method, self.target, self.version = first.split(" ")
        self.fields = fields


class Upstream:
    """One thread per connection. `answer(peer, request)` reads the body, answers, and returns whether to keep the connection."""

    def __init__(self, answer, idle=None):
        self.answer = answer
        self.idle = idle  # seconds without a request after which a connection is closed, from a function
        self.peers = set()
        self.lock = threading.Lock()
        self.port = 0
        self.listener = None
        self.rise()

    def rise(self):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(512)
        self.port = listener.getsockname()[1]
        self.listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def die(self):
        """Closes the listener and resets every connection."""
        listener, self.listener = self.listener, None
        if listener:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self.lock:
            peers = list(self.peers)
        for peer in peers:
            try:
                peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                peer.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = Peer(connection)
            with self.lock:
                self.peers.add(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        try:
            while True:
                peer.socket.settimeout(self.idle() if self.idle else None)
                request = Request(*peer.head())
                peer.socket.settimeout(30)
                if not self.answer(peer, request):
                    return
        except (Gone, ValueError):
            pass
        finally:
            with self.lock:
                self.peers.discard(peer)
            peer.close()
