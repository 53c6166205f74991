"""The base of every client of the soak: a thread with its own random numbers, whose `step` does one thing.

`fail` is for what must never happen: a wrong body, another request's answer, an error on a healthy path.
"""
import collections
import hashlib
import json
import random
import socket
import threading
import time

from live import Gone, Peer
from upstream import body_of

EMPTY = hashlib.sha256().hexdigest()


class Shared:
    """State shared by all clients: the gateway's address, whether to run, the failures."""

    def __init__(self, port):
        self.port = port
        self.go = threading.Event()
        self.over = False  # the threads must end
        self.ending = False  # the gateway drains: it may close a connection before it answers
        self.failures = []
        self.lock = threading.Lock()

    def failed(self, what):
        with self.lock:
            self.failures.append(what)


class Answer:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def code(self):
        try:
            return json.loads(self.body).get("code", "?")
        except ValueError:
            return "?"

    def __str__(self):
        return f"{self.status} {self.fields} {len(self.body)} bytes {self.body[:200]!r}"


def read_answer(peer, method="GET"):
    while True:
        first, fields = peer.head()
        status = int(first.split(" ")[1])
        if status >= 200 or status == 101:
            break
    if method == "HEAD" or status in (101, 204, 304):
        return Answer(status, fields, b"")
    if "content-length" in fields or "transfer-encoding" in fields:
        return Answer(status, fields, b"".join(peer.body(fields)))
    body = peer.held
    try:
        while True:
            body += peer.more()
    except Gone as end:
        if str(end) != "closed":
            raise
    return Answer(status, fields, body)


class Client(threading.Thread):
    a_second = 5.0  # steps

    def __init__(self, shared, number, seed, share):
        super().__init__(name=f"{type(self).__name__.lower()}{number}", daemon=True)
        self.shared = shared
        self.random = random.Random(f"{seed} {self.name}")
        self.pace = self.a_second * share
        self.seen = collections.Counter()
        self.finished = bytearray()  # by number of the request: 1 when its whole answer has arrived
        self.peer = None
        self.parked = threading.Event()

    def run(self):
        while not self.shared.over:
            if not self.shared.go.is_set():
                self.hang_up()
                self.parked.set()
                self.shared.go.wait(0.2)
                continue
            self.parked.clear()
            try:
                self.step()
            except Gone as error:
                self.hang_up()
                self.gone(error)
            except Exception as error:
                self.hang_up()
                self.fail(f"the client itself failed: {type(error).__name__}: {error}")
            time.sleep(self.random.expovariate(self.pace))
        self.hang_up()
        self.parked.set()

    # -- helpers of the kinds of clients

    def gone(self, error):
        self.seen["gone"] += 1

    def fail(self, what):
        self.shared.failed(f"{self.name}: {what}")
        self.seen["FAILED"] += 1

    def connect(self):
        self.hang_up()
        try:
            connection = socket.create_connection(("127.0.0.1", self.shared.port), timeout=30)
        except OSError as error:
            raise Gone(f"no connection: {error}") from error
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.peer = Peer(connection)
        return self.peer

    def hang_up(self):
        if self.peer:
            self.peer.close()
            self.peer = None

    def next_id(self):
        self.finished.append(0)
        return f"{self.name}-{len(self.finished) - 1}"

    def done(self, identity):
        self.finished[int(identity.rpartition("-")[2])] = 1

    def size(self):
        return self.random.choice([0, 1, 100, 1000, 5000, 16384, self.random.randrange(200000)])

    def head(self, route, kind, identity, size, *fields, method="GET", version="1.1"):
        return "\r\n".join([f"{method} /{route}/{kind}/{identity}/{size} HTTP/{version}", "Host: soak", *fields, "", ""]).encode()

    def is_right(self, answer, identity, size, upload=EMPTY, method="GET"):
        """Returns whether it is the whole answer to that request. Any other answer with status 200 is a failure."""
        if answer.status != 200:
            return False
        wanted = b"" if method == "HEAD" else body_of(identity, size)
        if answer.fields.get("x-id") != identity or answer.body != wanted or answer.fields.get("x-upload", EMPTY) != upload:
            self.fail(f"{identity} ({size} bytes) got another answer: {answer}")
        return True

    def get(self, route, kind, size, *fields, fresh=False):
        """Sends one GET; returns the answer and its id."""
        identity = self.next_id()
        peer = self.connect() if fresh or not self.peer else self.peer
        peer.send(self.head(route, kind, identity, size, *fields))
        answer = read_answer(peer)
        self.done(identity)
        self.is_right(answer, identity, size)
        self.seen[answer.status] += 1
        if answer.fields.get("connection", "") == "close":
            self.hang_up()
        return answer
