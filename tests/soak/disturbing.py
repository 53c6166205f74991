"""Misbehaving clients: slow, silent, gone, or sending garbage."""
import hashlib
import socket
import time

from client import Client, read_answer
from live import Gone, Peer
from upstream import body_of

IDLE = 5  # timeouts.idle of the listener: longer than the one for heads


class Slow(Client):
    """Sends slowly, reads slowly, or is silent."""
    a_second = 2.0

    def step(self):
        if self.shared.ending:
            return
        self.random.choice([self.drips, self.stops_in_head, self.stops_in_body, self.sips, self.never_reads, self.is_silent])()
        self.hang_up()

    def drips(self):
        peer, identity = self.connect(), self.next_id()
        body = self.random.randbytes(50)
        stream = self.head("steady", "plain", identity, 3000, "Content-Length: 50", method="POST") + body
        step = len(stream) // 12
        for i in range(0, len(stream), step):
            peer.send(stream[i:i + step])
            time.sleep(0.08)
        answer = read_answer(peer)
        self.done(identity)
        if not self.is_right(answer, identity, 3000, hashlib.sha256(body).hexdigest()):
            self.fail(f"a dripping client: {answer}")
        self.seen["dripped"] += 1

    def is_timed_out(self, what):
        try:
            answer = read_answer(self.peer)
            if answer.status != 408:
                self.fail(f"{what}: {answer}")
        except Gone as error:
            # A silent client that connects right before the gateway drains is known to the kernel only, which does not close it.
            if "timed out" in str(error) and not self.shared.ending:
                self.fail(f"{what}: is still waited for")
        self.seen["timed out"] += 1

    def stops_in_head(self):
        peer = self.connect()
        head = self.head("steady", "plain", "nobody", 10)
        peer.send(head[:self.random.randrange(1, len(head) - 1)])
        self.is_timed_out("stopped in its head")

    def stops_in_body(self):
        peer = self.connect()
        head = self.head("steady", "plain", self.next_id(), 10, "Content-Length: 100", method="POST")
        peer.send(head, b"x" * self.random.randrange(99))
        self.is_timed_out("stopped in its body")

    def listen(self, size):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(30)
        try:
            connection.connect(("127.0.0.1", self.shared.port))
        except OSError as error:
            connection.close()
            raise Gone(str(error)) from error
        self.peer, identity = Peer(connection), self.next_id()
        self.peer.send(self.head("steady", "plain", identity, size))
        return identity

    def sips(self):
        identity = self.listen(300000)
        got = b""
        _, fields = self.peer.head()
        while len(got) + len(self.peer.held) < 300000:
            got += self.peer.held
            self.peer.held = self.peer.more(8192)
            time.sleep(0.01)
        self.done(identity)
        if fields.get("x-id") != identity or got + self.peer.held != body_of(identity, 300000):
            self.fail(f"a sipping client got another body than {identity}'s")
        self.seen["sipped"] += 1

    def never_reads(self):
        self.listen(8_000_000)
        time.sleep(self.random.choice([0.5, 4]))
        self.seen["never read"] += 1

    def is_silent(self):
        self.connect()
        began = time.monotonic()
        self.is_timed_out("silent")
        if time.monotonic() - began < IDLE and not self.shared.ending:
            self.fail(f"silent: closed after {time.monotonic() - began:.1f} s")


class Leaver(Client):
    """Leaves with a reset or a close at any point."""
    a_second = 10.0

    def step(self):
        peer, identity = self.connect(), self.next_id()
        upload = self.head("resets", "plain", identity, 100, "Content-Length: 100000", method="POST") + b"x" * 100000
        kind = self.random.choice(["head", "body", "before the answer", "answer", "slow answer"])
        if kind == "head":
            peer.send(upload[:self.random.randrange(1, 60)])
        elif kind == "body":
            peer.send(upload[:self.random.randrange(200, len(upload) - 1)])
        elif kind == "before the answer":
            peer.send(self.head("resets", self.random.choice(["plain", "slow", "stall"]), identity, 50000))
        else:
            peer.send(self.head("resets", "plain", identity, 3_000_000))
            for _ in range(self.random.randrange(1, 5)):
                peer.more(1000)
            if kind == "slow answer":
                time.sleep(0.1)
        self.seen[f"left in {kind}"] += 1
        peer.reset() if self.random.random() < 0.6 else peer.close()


class Garbage(Client):
    """Sends bytes that are no request, or must be refused."""
    a_second = 8.0
    REFUSED = [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"q" * 200,
               b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
               b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
               b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
               b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 2\r\n\r\nab",
               b"POST /steady/plain/nobody/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnope\r\n",
               b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
               b"GET / HTTP/1.1\r\nHost: a\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(150)) + b"\r\n",
               b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n"]

    def step(self):
        peer = self.connect()
        if self.random.random() < 0.3:
            peer.send(self.random.randbytes(self.random.randrange(1, 3000)))
            peer.socket.shutdown(socket.SHUT_WR)
        else:
            peer.send(self.random.choice(self.REFUSED))
        answer = read_answer(peer)
        self.seen[answer.status] += 1
        if answer.status < 400:
            self.fail(f"garbage was answered: {answer}")
        self.hang_up()

    def gone(self, error):
        self.seen["closed"] += 1
        if "timed out" in str(error):
            self.fail("garbage is still waited for")
