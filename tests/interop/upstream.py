"""The upstream of the interop checks: bodies of any size, chunked or not, ranges, uploads counted, a WebSocket echo.

    /bytes/N        N bytes of a pattern, with Content-Length; Range is honoured
    /chunked/N      the same, chunked
    /upload         what was received: {"method", "bytes", "sha256", "chunked"}
    /socket         a WebSocket that sends every text back
    /page           the page of the browser check
"""
import base64
import hashlib
import itertools
import json
import os
import re

# A length that no power of two divides: a lost, doubled or misplaced buffer changes the received bytes.
BLOCK = bytes(hashlib.shake_128(b"headgate").digest(65521))
BIG = BLOCK * 4
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.html")
WEBSOCKET = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def pattern(length, begin=0):
    """Yields pieces of the pattern from `begin`."""
    offset = begin % len(BLOCK)
    while length > 0:
        piece = BIG[offset:offset + length]
        length -= len(piece)
        offset = 0
        yield piece


def pattern_sha256(length):
    digest = hashlib.sha256()
    for piece in pattern(length):
        digest.update(piece)
    return digest.hexdigest()


def head(status, *fields):
    return "\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode()


def send_bytes(peer, request, length):
    asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.fields.get("range", ""))
    if asked:
        first, last = int(asked[1]), min(int(asked[2]), length - 1)
        fields = ["206 Partial Content", f"Content-Range: bytes {first}-{last}/{length}"]
        first, length = first, last - first + 1
    else:
        first, fields = 0, ["200 OK", "Accept-Ranges: bytes"]
    pieces = pattern(length, first) if request.method != "HEAD" else iter(())
    begin = next(pieces, b"")
    peer.send(head(*fields, "Content-Type: application/octet-stream", f"Content-Length: {length}"), begin)
    for piece in pieces:
        peer.send(piece)


def send_chunked(peer, length):
    peer.send(head("200 OK", "Content-Type: application/octet-stream", "Transfer-Encoding: chunked"))
    for piece in pattern(length):
        peer.send(b"%x\r\n" % len(piece), piece, b"\r\n")
    peer.send(b"0\r\n\r\n")


def send_document(peer, kind, text, method):
    body = text.encode()
    peer.send(head("200 OK", f"Content-Type: {kind}", f"Content-Length: {len(body)}"), b"" if method == "HEAD" else body)


def count_upload(peer, request):
    digest, size = hashlib.sha256(), 0
    for piece in peer.body(request.fields):
        digest.update(piece)
        size += len(piece)
    seen = {"method": request.method, "bytes": size, "sha256": digest.hexdigest(),
            "chunked": "chunked" in request.fields.get("transfer-encoding", "")}
    send_document(peer, "application/json", json.dumps(seen), request.method)


def take(peer, length):
    return b"".join(peer.exactly(length))


def echo_texts(peer, request):
    accept = hashlib.sha1((request.fields["sec-websocket-key"] + WEBSOCKET).encode()).digest()
    peer.send(head("101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
                   f"Sec-WebSocket-Accept: {base64.b64encode(accept).decode()}"))
    while True:
        first, second = take(peer, 2)
        length = second & 127
        if length >= 126:
            length = int.from_bytes(take(peer, 2 if length == 126 else 8), "big")
        mask = take(peer, 4)
        text = bytes(a ^ b for a, b in zip(take(peer, length), itertools.cycle(mask)))
        size = bytes([length]) if length < 126 else b"\x7e" + length.to_bytes(2, "big") if length < 65536 else \
            b"\x7f" + length.to_bytes(8, "big")
        peer.send(bytes([first]), size, text)
        if first & 15 == 8:
            return


def answer(peer, request):
    path = request.target.partition("?")[0]
    if path.startswith("/limited/"):
        path = path[len("/limited"):]
    if path == "/upload":
        count_upload(peer, request)
        return True
    for _ in peer.body(request.fields):
        pass
    kind, _, size = path[1:].partition("/")
    if kind == "bytes":
        send_bytes(peer, request, int(size))
    elif kind == "chunked":
        send_chunked(peer, int(size))
    elif kind == "socket":
        echo_texts(peer, request)
        return False
    elif kind == "page":
        with open(PAGE) as page:
            send_document(peer, "text/html", page.read(), request.method)
    elif kind == "id":
        send_document(peer, "text/plain", size, request.method)
    else:
        peer.send(head("404 Not Found", "Content-Length: 0"))
    return True
