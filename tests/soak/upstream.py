"""The upstream of the soak: the path selects its behaviour, correct or faulty.

    /ROUTE/KIND/ID/SIZE    ID names the request; the answer carries it in X-Id, and its body is made from it

A body belongs to one id, so an answer that reaches another request, or a piece of one, cannot pass for the right one.
"""
import base64
import hashlib
import time

STALL = 1.2  # longer than every timeout of the route `flaky`
WEBSOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def body_of(identity, size):
    block = hashlib.shake_128(identity.encode()).digest(min(size, 1021))
    return (block * (size // 1021 + 1))[:size] if size > 1021 else block


def head(identity, *fields, status="200 OK"):
    return "\r\n".join([f"HTTP/1.1 {status}", f"X-Id: {identity}", *fields, "", ""]).encode()


def chunked(body, pieces=3):
    step = max(1, len(body) // pieces)
    return b"".join(b"%x\r\n%b\r\n" % (len(body[i:i + step]), body[i:i + step]) for i in range(0, len(body), step))


# Each gets the connection, the request's id, the correct body and a head with its length; returns whether to keep the connection.

def plain(peer, identity, body, start):
    peer.send(start(f"Content-Length: {len(body)}"), body)
    return True


def slow(peer, identity, body, start):
    time.sleep(0.03)
    return plain(peer, identity, body, start)


def in_chunks(peer, identity, body, start):
    peer.send(start("Transfer-Encoding: chunked"), chunked(body), b"0\r\n\r\n")
    return True


def until_close(peer, identity, body, start):
    peer.send(start("Connection: close"), body)
    return False


def interim(peer, identity, body, start):
    peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
    return plain(peer, identity, body, start)


def too_long(peer, identity, body, start):
    peer.send(start(f"Content-Length: {len(body)}"), body, head("nobody", "Content-Length: 4"), b"evil")
    return True


def reset(peer, identity, body, start):
    peer.send(start(f"Content-Length: {len(body) + 1000}"), body)
    peer.reset()
    return False


def cut(peer, identity, body, start):
    peer.send(start(f"Content-Length: {len(body) + 1000}"), body)
    return False


def cut_chunks(peer, identity, body, start):
    peer.send(start("Transfer-Encoding: chunked"), chunked(body))
    return False


def bad_chunk(peer, identity, body, start):
    peer.send(start("Transfer-Encoding: chunked"), chunked(body), b"zz\r\n\r\n")
    return False


def stall(peer, identity, body, start):
    time.sleep(STALL)
    return False


def stall_midway(peer, identity, body, start):
    peer.send(start(f"Content-Length: {len(body) + 1000}"), body)
    time.sleep(STALL)
    return False


def silent(peer, identity, body, start):
    return False


def garbage(peer, identity, body, start):
    peer.send(b"\x00\x16 no HTTP at all\r\n\r\n", body)
    return False


KINDS = {function.__name__: function for function in (
    plain, slow, in_chunks, until_close, interim, too_long, reset, cut, cut_chunks, bad_chunk, stall, stall_midway, silent,
    garbage)}


def echo_bytes(peer, identity, key):
    accept = base64.b64encode(hashlib.sha1(key.encode() + WEBSOCKET).digest()).decode()
    peer.send(head(identity, "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Accept: {accept}",
                   status="101 Switching Protocols"))
    while True:
        peer.send(peer.held or peer.more())
        peer.held = b""


def answer(peer, request):
    _, _, kind, identity, size = request.target.split("/")
    if "upgrade" in request.fields:
        return echo_bytes(peer, identity, request.fields["sec-websocket-key"])
    if kind.startswith("early"):  # answers before it has read the request; then closes, or reads the request
        peer.send(head(identity, "Content-Length: 0"))
        if kind == "early":
            return False
        for _ in peer.body(request.fields):
            pass
        return True
    digest = hashlib.sha256()
    for piece in peer.body(request.fields):
        digest.update(piece)
    body = body_of(identity, int(size))

    def start(*fields):
        return head(identity, f"X-Upload: {digest.hexdigest()}", *fields)

    if request.method == "HEAD":
        peer.send(start(f"Content-Length: {len(body)}"))
        return True
    return KINDS[kind](peer, identity, body, start)
