"""Correct clients that know their expected answers: from healthy upstreams, from failing ones, under limits."""
import base64
import collections
import hashlib
import json
import threading
import time

from client import Client, read_answer
from live import Gone


class Good(Client):
    """Uses healthy upstreams only, so every request must get its correct answer."""
    a_second = 45.0

    def step(self):
        if not self.peer or self.random.random() < 0.02:
            self.connect()
        identity, size = self.next_id(), self.size()
        kind = self.random.choice(["plain", "plain", "plain", "in_chunks", "interim", "until_close"])
        method = self.random.choices(["GET", "HEAD", "POST", "PUT", "DELETE"], [60, 5, 20, 10, 5])[0]
        body = self.random.randbytes(self.size()) if method in ("POST", "PUT") else None
        if self.peer.held:
            self.fail(f"bytes that belong to no answer: {self.peer.held[:200]!r}")
        begun = False
        try:
            self.ask(kind, identity, size, method, body)
            self.peer.held = self.peer.more()  # the answer begins
            begun = True
            answer = read_answer(self.peer, method)
        except Gone as error:
            self.hang_up()
            if not self.shared.ending or begun:
                self.fail(f"{identity} {method} {kind} {size}: no answer: {error}")
            return
        self.done(identity)
        if not self.is_right(answer, identity, size, hashlib.sha256(body or b"").hexdigest(), method):
            self.fail(f"{identity} {method} {kind} {size}: {answer}")
        self.seen[answer.status] += 1
        if answer.fields.get("connection", "") == "close":
            self.hang_up()

    def gone(self, error):
        if not self.shared.ending:
            self.fail(str(error))

    def ask(self, kind, identity, size, method, body):
        if body is None:
            self.peer.send(self.head("steady", kind, identity, size, method=method))
        elif self.random.random() < 0.4:
            self.peer.send(self.head("steady", kind, identity, size, "Transfer-Encoding: chunked", method=method))
            while body:
                length = self.random.randrange(1, 20000)
                piece, body = body[:length], body[length:]
                self.peer.send(b"%x\r\n" % len(piece), piece, b"\r\n")
            self.peer.send(b"0\r\n\r\n")
        else:
            self.peer.send(self.head("steady", kind, identity, size, f"Content-Length: {len(body)}", method=method), body)


class Pipeliner(Client):
    """Many pipelined requests, sent in random pieces; sometimes with a malformed one among them."""
    a_second = 2.0

    def step(self):
        route = self.random.choice(["steady", "closing"])
        sent = [(self.next_id(), self.random.randrange(20000)) for _ in range(self.random.randrange(2, 40))]
        stream = b"".join(self.head(route, "plain", *each) for each in sent)
        broken = self.random.random() < 0.3
        if broken:
            stream += b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + self.head(route, "plain", "nobody", 10)
        peer = self.connect()
        threading.Thread(target=self.pour, args=(peer, stream, self.random.randrange(1, 400)), daemon=True).start()
        for identity, size in sent:
            try:
                answer = read_answer(peer)
            except Gone as error:
                if self.shared.ending:
                    raise
                return self.fail(f"{identity} pipelined: no answer: {error}")
            self.done(identity)
            self.seen[answer.status] += 1
            if not self.is_right(answer, identity, size):
                self.fail(f"{identity} pipelined: {answer}")
            if answer.fields.get("connection", "") == "close" and self.shared.ending:
                return self.hang_up()
        if broken:
            answer = read_answer(peer)
            if answer.status != 400:
                self.fail(f"a request with two Hosts: {answer}")
        self.hang_up()

    @staticmethod
    def pour(peer, stream, pieces):
        step = max(1, len(stream) // pieces)
        try:
            for i in range(0, len(stream), step):
                peer.send(stream[i:i + step])
        except Gone:
            pass


class Limited(Client):
    """The only client of its keys: never more than the limit passes, and a request after Retry-After is admitted."""
    a_second = 0.5
    RATE, BURST = 20, 20

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.passed = collections.Counter()
        self.first = {}

    def step(self):
        if self.shared.ending:
            return
        key = f"{self.name}-{self.random.randrange(4)}"
        self.connect()  # the last connection may have been idle for too long
        for _ in range(self.random.randrange(5, 60)):
            answer = self.ask(key)
            if answer.status == 429:
                break
        if answer.status != 429:
            return
        wait = answer.fields.get("retry-after", "")
        if not wait.isdigit() or json.loads(answer.body).get("violated-policies") != ["second"]:
            return self.fail(f"a 429 without Retry-After or rule: {answer}")
        self.hang_up()
        time.sleep(int(wait))
        answer = self.ask(key)
        if answer.status != 200:
            self.fail(f"refused after waiting {wait} s: {answer}")

    def ask(self, key):
        self.first.setdefault(key, time.monotonic())
        answer = self.get("limited", "plain", 100, f"X-API-Key: {key}")
        if answer.status not in (200, 429):
            self.fail(f"limited: {answer}")
        self.passed[key] += answer.status == 200
        most = self.BURST + self.RATE * (time.monotonic() - self.first[key] + 0.01)
        if self.passed[key] > most:
            self.fail(f"{self.passed[key]} passed for {key}, at most {most:.1f} may have")
        return answer

    def gone(self, error):
        if not self.shared.ending:
            self.fail(f"no answer: {error}")


class Varied(Client):
    """Uses a limit that reloads change."""
    a_second = 12.0

    def step(self):
        answer = self.get("varied", "plain", self.size(), f"X-API-Key: v{self.random.randrange(3)}")
        if answer.status not in (200, 429):
            self.fail(f"varied: {answer}")

    def gone(self, error):
        if not self.shared.ending:
            self.fail(f"no answer: {error}")


class Faulty(Client):
    """Requests an upstream's fault and knows the expected result."""
    a_second = 10.0
    WHOLE = {"plain": {200}, "too_long": {200}, "interim": {200}, "stall": {504}, "silent": {502}, "garbage": {502}}
    CUT = ["reset", "cut", "cut_chunks", "bad_chunk", "stall_midway"]

    def step(self):
        if self.random.random() < 0.1:
            return self.upload_to(self.random.choice(["early", "early_kept"]))
        kind = self.random.choice([*self.WHOLE, *self.CUT, "plain", "too_long"])
        size = self.random.choice([1, 1000, 30000] if kind in self.CUT else [0, 10, 1000])
        try:
            answer = self.get("flaky", kind, size)
        except Gone as error:
            self.hang_up()
            self.seen["cut"] += 1
            if kind in self.WHOLE and not self.shared.ending:
                self.fail(f"flaky {kind} {size}: no answer: {error}")
            return
        if answer.status not in self.WHOLE.get(kind, {502, 504}):
            self.fail(f"flaky {kind} {size}: {answer}")

    def upload_to(self, kind):
        """An upstream that answers before it has the request: that answer, an error, or a cut, and no bytes for the next request."""
        peer, identity, size = self.connect(), self.next_id(), self.random.choice([1000, 50000, 500000])
        peer.send(self.head("flaky", kind, identity, 0, f"Content-Length: {size}", method="POST"), b"x" * (size // 2))
        time.sleep(0.02)
        peer.send(b"x" * (size - size // 2))
        answer = read_answer(peer)
        self.done(identity)
        self.seen[f"{kind} {answer.status}"] += 1
        if not self.is_right(answer, identity, 0) and answer.status != 502:
            self.fail(f"flaky {kind} {size}: {answer}")
        self.hang_up()


class Mortal(Client):
    """Its upstream dies and comes back: the correct answer, an upstream error, or a cut. Closing: idle connections close."""
    a_second = 15.0
    ERRORS = {"upstream_refused", "upstream_reset", "upstream_closed", "upstream_unavailable", "upstream_timeout"}

    def step(self):
        if self.random.random() < 0.5:
            answer = self.get("mortal", self.random.choice(["plain", "in_chunks", "slow"]), self.size())
            if answer.status != 200 and answer.code() not in self.ERRORS:
                self.fail(f"mortal: {answer}")
        else:
            answer = self.get("closing", "plain", self.size())
            if answer.status != 200:
                self.fail(f"closing: {answer}")


class Crowd(Client):
    """More requests at once than the upstream `narrow` takes: each is answered, or refused as busy."""
    a_second = 1.0

    def step(self):
        sent = []
        try:
            for _ in range(self.random.randrange(2, 16)):
                self.connect()
                peer, self.peer = self.peer, None
                sent.append((peer, self.next_id(), self.random.randrange(3000)))
                peer.send(self.head("narrow", "slow", *sent[-1][1:]))
            for peer, identity, size in sent:
                if self.random.random() < 0.1:
                    peer.reset()
                    continue
                answer = read_answer(peer)
                self.done(identity)
                self.seen[answer.status] += 1
                if not self.is_right(answer, identity, size) and answer.code() != "upstream_busy":
                    self.fail(f"narrow: {answer}")
        finally:
            for peer, *_ in sent:
                peer.close()

    def gone(self, error):
        if not self.shared.ending:
            self.fail(f"narrow: no answer: {error}")


class Tunnel(Client):
    """WebSockets: the bytes arrive unchanged; either side may leave at any moment."""
    a_second = 2.0

    def step(self):
        if self.shared.ending:
            return
        peer, identity = self.connect(), self.next_id()
        key = base64.b64encode(self.random.randbytes(16)).decode()
        peer.send(self.head("steady", "plain", identity, 0, "Connection: Upgrade", "Upgrade: websocket", f"Sec-WebSocket-Key: {key}",
                            "Sec-WebSocket-Version: 13"))
        answer = read_answer(peer)
        if answer.status != 101 or answer.fields.get("x-id") != identity:
            return self.fail(f"no tunnel: {answer}")
        for _ in range(self.random.randrange(4)):
            sent = self.random.randbytes(self.random.randrange(1, 30000))
            peer.send(sent)
            if b"".join(peer.exactly(len(sent))) != sent:
                self.fail(f"{identity}: the tunnel changed what it carried")
        self.seen["tunnels"] += 1
        peer.reset() if self.random.random() < 0.5 else self.hang_up()

    def gone(self, error):
        if not self.shared.ending:
            self.fail(f"the tunnel broke: {error}")
