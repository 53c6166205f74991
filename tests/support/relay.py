"""A relay between gateways and a Redis that forwards bytes late, cut or corrupted, as configured. Runs in the event loop of a `Loop`."""
import asyncio
import itertools

# Bytes that no Redis sends: an unknown type, impossible lengths, a length beyond every limit, a reply without a command.
GARBAGE = [b"\x00\xff\xfe\r\n", b"$-7\r\n", b"*99999999999\r\n", b"$536870913\r\n", b":12notanumber\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"]


class Side(asyncio.Protocol):
    """One of the two sockets of a connection through the relay."""

    def __init__(self, on_data, lost):
        self.on_data, self.lost = on_data, lost
        self.to = None

    def connection_made(self, transport):
        self.to = transport

    def data_received(self, data):
        self.on_data(data)

    def connection_lost(self, error):
        self.lost()


class Pair:
    def __init__(self, relay):
        self.relay = relay
        self.server = None
        self.early = b""
        self.late = 0.0  # when the last waiting piece will be forwarded
        self.is_cut = False  # nothing more is forwarded, because bytes are missing
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

    def send(self, data, after=0.0):
        """Forwards pieces in order, with any delays."""
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

    # -- manners: how a piece of replies is forwarded

    @staticmethod
    def hand_on(pair, data):
        pair.send(data)

    @staticmethod
    def slowly(seconds):
        return lambda pair, data: pair.send(data, seconds)

    def cut_sometimes(self, pair, data):
        """Forwards only the first half of about every 40th piece, then closes."""
        if next(self.turn) % 40 != 39:
            return pair.send(data)
        pair.send(data[:max(1, len(data) // 2)])
        pair.is_cut = True
        self.loop.call_later(0.001, pair.close)

    def spoil_sometimes(self, pair, data):
        number = next(self.turn)
        if number % 40 != 39:
            return pair.send(data)
        pair.send(data[:len(data) // 2 * (number % 2)] + GARBAGE[number // 40 % len(GARBAGE)] + data)

    def stop_halfway_sometimes(self, pair, data):
        """Forwards half of a piece, and the rest after the timeout of its command."""
        if next(self.turn) % 40 != 39:
            return pair.send(data)
        pair.send(data[:len(data) // 2])
        pair.send(data[len(data) // 2:], 0.3)

    @staticmethod
    def say_nothing(pair, data):
        pass
