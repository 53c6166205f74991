"""Real redis-servers for tests of whole programs: one, behind sentinels, or a cluster. They write no files but a log.

Every server has a folder and ports of its own and is ended by its own process id; it also ends when the test does. Servers are
started by the main thread only, because the kernel ends a process when the thread that started it does.
"""
import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
SLOTS = 16384


class Unwell(Exception):
    """An error reply."""


def wait_for(question, what, seconds=20, pause=0.01):
    until = time.monotonic() + seconds
    while not (found := question()):
        if time.monotonic() > until:
            raise RuntimeError(f"in vain for {seconds} s: {what}")
        time.sleep(pause)
    return found


def is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def free_port():
    """Returns a port below those that the kernel gives to connections, such that a cluster's second port, 10000 above, is free too."""
    for _ in range(100):
        port = random.SystemRandom().randrange(12000, 22000)
        if is_free(port) and is_free(port + 10000):
            return port
    raise RuntimeError("no port for redis-server")


def end_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Connection:
    """Commands and replies, one after the other. Bulk replies are bytes."""

    def __init__(self, port, seconds=5):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))

    def ask(self, *words):
        self.send(*words)
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b":":
            return int(rest)
        if kind == b"-":
            raise Unwell(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        return [self.reply() for _ in range(int(rest))]

    def close(self):
        self.file.close()
        self.socket.close()


class Server:
    """One redis-server. `options` are its own: "--maxmemory", "10mb"; `lines`: a sentinel with this configuration."""

    def __init__(self, *options, lines=None):
        self.folder = tempfile.mkdtemp(prefix="headgate-redis-")
        self.port = free_port()
        self.process = None
        self.password = None
        if lines is None:
            self.command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", "",
                            "--loglevel", "warning", *options]
        else:
            with open(f"{self.folder}/conf", "w") as out:
                out.write(f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n{lines}")
            self.command = ["redis-server", f"{self.folder}/conf", "--sentinel"]
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, preexec_fn=end_with_parent)
        wait_for(self.answers, f"redis-server does not answer, see its log:\n{self.log()}")

    def log(self):
        with open(f"{self.folder}/log", errors="replace") as log:
            return log.read()[-2000:]

    def answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"redis-server ended at once; is it installed? script/setup\n{self.log()}")
        try:
            return self.ask("PING") == "PONG"
        except (OSError, Unwell) as error:
            return isinstance(error, Unwell) and "NOAUTH" in str(error)

    def connect(self, seconds=5):
        connection = Connection(self.port, seconds)
        if self.password:
            connection.ask("AUTH", self.password)
        return connection

    def ask(self, *words, seconds=5):
        connection = self.connect(seconds)
        try:
            return connection.ask(*words)
        finally:
            connection.close()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, login=""):
        return f"redis://{login}127.0.0.1:{self.port}/0"


class SentinelGroup:
    """A primary, two replicas and three sentinels that agree in half a second."""

    NAME = "main"

    def __init__(self):
        self.servers, self.sentinels = [], []
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self):
        self.primary = Server()
        self.servers.append(self.primary)
        self.primary.ask("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        self.replicas = []
        for _ in range(2):
            self.replicas.append(Server("--replicaof", "127.0.0.1", str(self.primary.port)))
            self.servers.append(self.replicas[-1])
        self.primary.ask("SET", "followed", "1")
        for each in self.replicas:
            wait_for(lambda: each.ask("GET", "followed") == b"1", "the replicas do not follow the primary")
        self.primary.ask("DEL", "followed")
        lines = (f"sentinel monitor {self.NAME} 127.0.0.1 {self.primary.port} 2\n"
                 f"sentinel down-after-milliseconds {self.NAME} 500\nsentinel failover-timeout {self.NAME} 2000\n")
        for _ in range(3):
            self.sentinels.append(Server(lines=lines))
            self.servers.append(self.sentinels[-1])
            self.sentinels[-1].ask("SENTINEL", "DEBUG", "PUBLISH-PERIOD", "200", "INFO-PERIOD", "500")
        for each in self.sentinels:
            wait_for(lambda: self._knows_all(each), "the sentinels do not know each other and the replicas")

    def _knows_all(self, sentinel):
        def fields(flat):
            return dict(zip(flat[::2], flat[1::2]))
        master = fields(sentinel.ask("SENTINEL", "MASTER", self.NAME))
        followers = [fields(each) for each in sentinel.ask("SENTINEL", "REPLICAS", self.NAME)]
        return (master[b"num-other-sentinels"] == b"2" and
                [each.get(b"master-link-status") for each in followers] == [b"ok", b"ok"])

    def cut_replicas_off(self):
        """Separates the replicas from the primary for good: its later writes are lost with it."""
        self.primary.ask("ACL", "SETUSER", "default", "-psync", "-sync")
        self.primary.ask("CLIENT", "KILL", "TYPE", "replica")

    def promoted(self):
        for each in self.replicas:
            if each.ask("ROLE")[0] == b"master":
                return each
        return None

    def url(self):
        return "redis+sentinel://" + ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels) + f"/{self.NAME}"

    def close(self):
        for each in reversed(self.servers):
            each.close()


class Cluster:
    """Three masters with a replica each, and optionally a fourth master without slots."""

    def __init__(self, spare=False):
        self.servers = []
        try:
            self._start(spare)
        except BaseException:
            self.close()
            raise

    def _start(self, spare):
        options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0",
                   "--repl-diskless-sync-delay", "0"]
        for _ in range(7 if spare else 6):
            self.servers.append(Server(*options))
        self.masters, self.replicas = self.servers[:3], self.servers[3:6]
        self.spare = self.servers[6] if spare else None
        for number, each in enumerate(self.servers):
            each.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            each.node = each.ask("CLUSTER", "MYID").decode()
        share = -(-SLOTS // 3)
        for number, each in enumerate(self.masters):
            each.ask("CLUSTER", "ADDSLOTSRANGE", number * share, min(SLOTS, (number + 1) * share) - 1)
        for each in self.servers[1:]:
            each.ask("CLUSTER", "MEET", "127.0.0.1", self.servers[0].port)
        for each in self.servers:
            wait_for(lambda: self._info(each)["cluster_known_nodes"] == str(len(self.servers)), "the nodes do not know each other")
        for master, replica in zip(self.masters, self.replicas):
            wait_for(lambda: self._follows(replica, master), "a replica does not accept its master")
        for each in self.servers:
            wait_for(lambda: self._info(each)["cluster_state"] == "ok", "the cluster is not well")
        for replica in self.replicas:
            wait_for(lambda: replica.ask("ROLE")[3] == b"connected", "a replica does not follow")

    @staticmethod
    def _follows(replica, master):
        try:
            return replica.ask("CLUSTER", "REPLICATE", master.node) == "OK"
        except Unwell:
            return False

    @staticmethod
    def _info(server):
        return dict(line.split(":") for line in server.ask("CLUSTER", "INFO").decode().split() if ":" in line)

    def owner(self, key):
        slot = self.masters[1].ask("CLUSTER", "KEYSLOT", key)
        share = -(-SLOTS // 3)
        return self.masters[slot // share]

    @staticmethod
    def has(master, slot):
        return any(low <= slot <= high and node[1] == master.port for low, high, node, *_ in master.ask("CLUSTER", "SLOTS"))

    def living_masters(self):
        return [each for each in self.servers if each.process.poll() is None and each.ask("ROLE")[0] == b"master"]

    def is_well(self, but=()):
        return all(self._info(each)["cluster_state"] == "ok" for each in self.servers if each not in but)

    def replica_of(self, master):
        return self.replicas[self.masters.index(master)]

    def move(self, slots, source, target):
        """A reshard as redis-cli does it: the slot is on two nodes while its keys move."""
        others = [each for each in self.masters + [self.spare] if each and each not in (source, target)]
        for slot in slots:
            target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.node)
            source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.node)
            while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 100):
                source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            for each in (target, source, *others):
                each.ask("CLUSTER", "SETSLOT", slot, "NODE", target.node)

    def url(self):
        return "redis+cluster://" + ",".join(f"127.0.0.1:{each.port}" for each in self.masters)

    def close(self):
        for each in reversed(self.servers):
            each.close()
