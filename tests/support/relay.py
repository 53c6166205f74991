"""Stands between gateways and a Redis and hands bytes on, late, torn or spoilt, as it is told. Runs in the event loop of a `Loop`."""
import asyncio
import itertools

# What no Redis says: an unknown type, lengths that cannot be, more than anybody should read, an answer that nobody asked for.
GARBAGE = [b"\x00\xff\xfe\r\n", b"$-7\r\n", b"*99999999999\r\n", b"$536870913\r\n", b":12notanumber\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"]


class Side(asyncio.Protocol):
    """One of the two sockets of a connection through the relay."""

    def __init__(self, heard, lost):
        self.heard, self.lost = heard, lost
        self.to = None

    def connection_made(self, transport):
        self.to = transport

    def data_received(self, data):
        self.heard(data)

    def connection_lost(self, error):
        self.lost()


class Pair:
    def __init__(self, relay):
        self.relay = relay
        self.server = None
        self.early = b""
        self.late = 0.0  # when the last piece that waits will be handed on
        self.is_cut = False  # nothing more is handed on, or the stream would have a hole
        self.client = Side(self.ask, self.close)

    async def reach(self):
        try:
            _, self.server = await self.relay.loop.create_connection(lambda: Side(self.reply, self.close), "127.0.0.1", self.relay.server_port)
        except OSError:
            return self.close()
        if self.early:
            self.server.to.write(self.early)

    def ask(self, data):
        if self.server is None:
            self.early += data
        else:
            self.server.to.write(data)

    def reply(self, data):
        if not self.is_cut:
            self.relay.manner(self, data)

    def say(self, data, after=0.0):
        """In order, however long each piece is held."""
        loop = self.relay.loop
        at = max(loop.time() + after, self.late)
        if at <= loop.time():
            return self.client.to.write(data)
        self.late = at
        loop.call_at(at, lambda: self.client.to.is_closing() or self.client.to.write(data))

    def close(self):
        self.relay.pairs.discard(self)
        for side in (self.client, self.server):
            if side and side.to:
                side.to.abort()


class Relay:
    def __init__(self, beside, server_port):
        self.beside, self.loop, self.server_port = beside, beside.loop, server_port
        self.pairs = set()
        self.manner = self.hand_on
        self.turn = itertools.count()
        self.listener = beside.run(self._listen())
        self.port = self.listener.sockets[0].getsockname()[1]

    async def _listen(self):
        def meet():
            pair = Pair(self)
            self.pairs.add(pair)
            self.loop.create_task(pair.reach())
            return pair.client
        return await self.loop.create_server(meet, "127.0.0.1", 0)

    def behave(self, manner):
        self.loop.call_soon_threadsafe(setattr, self, "manner", manner)

    def close(self):
        def end():
            self.listener.close()
            for pair in list(self.pairs):
                pair.close()
        self.loop.call_soon_threadsafe(end)

    # -- manners: what becomes of a piece of replies

    @staticmethod
    def hand_on(pair, data):
        pair.say(data)

    @staticmethod
    def slowly(seconds):
        return lambda pair, data: pair.say(data, seconds)

    def cut_sometimes(self, pair, data):
        """Of about every 40th piece, only the first half is ever heard."""
        if next(self.turn) % 40 != 39:
            return pair.say(data)
        pair.say(data[:max(1, len(data) // 2)])
        pair.is_cut = True
        self.loop.call_later(0.001, pair.close)

    def spoil_sometimes(self, pair, data):
        number = next(self.turn)
        if number % 40 != 39:
            return pair.say(data)
        pair.say(data[:len(data) // 2 * (number % 2)] + GARBAGE[number // 40 % len(GARBAGE)] + data)

    def stop_halfway_sometimes(self, pair, data):
        """Half of a piece, and the rest only after longer than anybody waits for it."""
        if next(self.turn) % 40 != 39:
            return pair.say(data)
        pair.say(data[:len(data) // 2])
        pair.say(data[len(data) // 2:], 0.3)

    @staticmethod
    def say_nothing(pair, data):
        pass
