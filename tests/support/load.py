"""Many HTTP/1.1 clients: an event loop in a separate thread, keep-alive, requests pipelined or one by one."""
import asyncio
import gc
import re
import threading
import time

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def request(path, **fields):
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"GET {path} HTTP/1.1\r\nHost: test\r\n{lines}\r\n".encode()


class Loop:
    """An event loop in a separate thread, so that work of the test is not measured as latency."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        gc.disable()  # a pause of the client would be measured as one of the gateway
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def begin(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def run(self, coroutine, seconds=120):
        return self.begin(coroutine).result(seconds)

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        gc.enable()


class Answer:
    __slots__ = ("head", "seconds")

    def __init__(self, head, seconds):
        self.head = head
        self.seconds = seconds

    @property
    def status(self):
        return int(self.head[9:12])

    def field(self, name):
        found = re.search(rb"\r\n" + name.encode() + rb": *([^\r\n]*)", self.head, re.IGNORECASE)
        return found.group(1).decode() if found else ""


class Client(asyncio.Protocol):
    """One connection. `on_answer(head)` is called with the head of every whole answer, `lost()` when the connection ends."""

    def __init__(self, on_answer, lost):
        self.on_answer, self.lost = on_answer, lost
        self.held = b""
        self.to = None

    def connection_made(self, transport):
        self.to = transport

    def connection_lost(self, error):
        self.lost()

    def data_received(self, data):
        held = self.held + data if self.held else data
        at = 0
        while (end := held.find(b"\r\n\r\n", at)) >= 0:
            head = held[at:end]
            length = LENGTH.search(head)
            whole = end + 4 + (int(length.group(1)) if length else 0)
            if whole > len(held):
                break
            at = whole
            self.on_answer(head)
        self.held = held[at:]


class Asker:
    """One connection and one request at a time; a connection that ended is made again. Returns None without an answer within `patience`."""

    def __init__(self, port, patience=10):
        self.port, self.patience = port, patience
        self.client = self.waiting = None

    async def ask(self, bytes_of_request):
        loop = asyncio.get_running_loop()
        began = time.monotonic()
        try:
            if self.client is None:
                _, self.client = await loop.create_connection(lambda: Client(self._on_answer, self._lost), "127.0.0.1", self.port)
            self.waiting = loop.create_future()
            self.client.to.write(bytes_of_request)
            alarm = loop.call_later(self.patience, self._lost)
            head = await self.waiting
            alarm.cancel()
        except OSError:
            head = None
        if head is None:
            self.close()
            return None
        return Answer(head, time.monotonic() - began)

    def _on_answer(self, head):
        if self.waiting and not self.waiting.done():
            self.waiting.set_result(head)

    def _lost(self):
        if self.waiting and not self.waiting.done():
            self.waiting.set_result(None)
        self.client = None

    def close(self):
        if self.client:
            self.client.to.abort()
        self.client = None


async def flood(ports, requests, on_answer, connections=200, at_once=None, pace=None):
    """Sends all of `requests` over many connections, spread evenly, pipelined on each connection.
    `on_answer(number, head, when)` is called for each. With `at_once` a connection has at most so many in flight, and with `pace`
    it waits so many seconds from one to the next. Returns the times of the first byte sent and of the last answer."""
    loop = asyncio.get_running_loop()
    began = []
    ended = [0.0]

    async def one(number):
        mine = requests[number::connections]
        at = [0]
        window = asyncio.Semaphore(at_once or len(mine))
        over = loop.create_future()

        def receive(head):
            now = time.monotonic()
            on_answer(number + at[0] * connections, head, now)
            at[0] += 1
            ended[0] = now
            window.release()
            if at[0] == len(mine) and not over.done():
                over.set_result(None)

        def lose():
            if not over.done():
                over.set_exception(ConnectionError(f"a connection ended after {at[0]} of {len(mine)} answers"))
        transport, _ = await loop.create_connection(lambda: Client(receive, lose), "127.0.0.1", ports[number % len(ports)])
        await start.wait()
        began.append(time.monotonic())
        if at_once is None:
            transport.write(b"".join(mine))
        else:
            for each in mine:
                await window.acquire()
                if over.done():
                    break
                transport.write(each)
                if pace:
                    await asyncio.sleep(pace)
        await over
        transport.abort()

    start = asyncio.Event()
    connections = min(connections, len(requests))
    tasks = [asyncio.ensure_future(one(number)) for number in range(connections)]
    await asyncio.sleep(0.2)  # every connection is open
    start.set()
    await asyncio.gather(*tasks)
    return min(began), ended[0]
