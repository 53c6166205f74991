"""The environment of the soaked gateway: its upstreams, its configuration in many versions, valid and broken, and its access log."""
import glob
import os
import re

import upstream
from live import Upstream

INFLIGHT = 60  # more than the clients of its routes ever have in flight: a 429 there means that a slot leaked

CONFIG = """
workers: 2
drain_timeout: 15s
listeners:
  - address: 127.0.0.1:0
    timeouts: {{ head: 2s, body: 2s, idle: 5s, write: 2s }}
admin: {{ address: 127.0.0.1:0 }}
log: {{ access: {{ path: {folder}/access.log, format: {format} }} }}
stores: {{ local: {{ type: memory, max_keys: 10000, snapshot: {{ path: {folder}/counters, interval: 3s }} }} }}
keys: {{ user: [ {{ header: X-API-Key }} ] }}
chains:
  user: {{ rules: [ {{ name: second, key: user, algorithm: token_bucket, limit: 20/second }} ] }}
  varied:
    rules:
      - {{ name: v1, key: user, algorithm: {algorithm}, limit: {limit}/second }}
      - {{ name: v2, key: [ user, route ], algorithm: gcra, limit: 1000/minute }}
  inflight: {{ rules: [ {{ name: inflight, key: route, algorithm: concurrency, limit: {inflight} }} ] }}
upstreams:
  steady: {{ servers: [ {steady} ], timeouts: {{ first_byte: 20s, idle: 20s }}, pool: {{ idle_timeout: {pool} }} }}
  closing: {{ servers: [ {closing} ], timeouts: {{ first_byte: 20s, idle: 20s }}, pool: {{ idle_timeout: 2s }} }}
  flaky:
    servers: [ {flaky} ]
    timeouts: {{ connect: 500ms, first_byte: 500ms, idle: 500ms }}
    pool: {{ idle_timeout: 2s }}
  mortal: {{ servers: [ {mortal} ], timeouts: {{ connect: 500ms, first_byte: 5s, idle: 5s }}, pool: {{ idle_timeout: 2s }} }}
  narrow: {{ servers: [ {narrow} ], max_connections: 2, max_pending: 3, pool: {{ size: {size}, idle_timeout: 2s }} }}
routes:
{extra}  - {{ name: steady, match: {{ path: /steady/* }}, upstream: steady }}
  - {{ name: closing, match: {{ path: /closing/* }}, upstream: closing }}
  - {{ name: flaky, match: {{ path: /flaky/* }}, upstream: flaky, chains: [ inflight ] }}
  - {{ name: resets, match: {{ path: /resets/* }}, upstream: flaky, chains: [ inflight ] }}
  - {{ name: mortal, match: {{ path: /mortal/* }}, upstream: mortal }}
  - {{ name: narrow, match: {{ path: /narrow/* }}, upstream: narrow }}
  - {{ name: limited, match: {{ path: /limited/* }}, upstream: steady, chains: [ user ] }}
  - {{ name: varied, match: {{ path: /varied/* }}, upstream: steady, chains: [ varied ], headers: {{ response: {{ set: {{ X-Version: "{version}" }} }} }} }}
"""

EXTRA = "  - { name: extra, match: { path: /extra/* }, upstream: mortal, chains: [ varied ] }\n"

BREAKERS = [
    lambda text: text[:len(text) // 2] + "\n  - {{{",
    lambda text: text.replace("token_bucket", "token_buckets"),
    lambda text: text.replace("upstream: mortal", "upstream: nobody"),
    lambda text: text + "\nworkers: 3\n",
    lambda text: "",
    lambda text: text.replace("drain_timeout: 15s", "drain_timeout: 15 parsecs"),
]


class Setting:
    def __init__(self, folder, random):
        self.folder = folder
        self.random = random
        self.file = os.path.join(folder, "gateway.yaml")
        self.version = 0

        def idle():
            return random.uniform(0.05, 0.4)

        self.upstreams = {name: [Upstream(upstream.answer, idle if name == "closing" else None) for _ in range(count)]
                          for name, count in (("steady", 2), ("closing", 2), ("flaky", 2), ("mortal", 2), ("narrow", 1))}
        self.log = Log(folder)

    def write(self, broken=False):
        self.version += 1
        servers = {name: ", ".join(f"127.0.0.1:{each.port}" for each in all_of) for name, all_of in self.upstreams.items()}
        text = CONFIG.format(
            folder=self.folder, format=self.random.choice(["json", "combined"]), inflight=INFLIGHT, version=self.version,
            algorithm=self.random.choice(["token_bucket", "gcra", "fixed_window", "sliding_window", "sliding_log"]),
            limit=self.random.choice([5, 6, 50]), pool=self.random.choice(["1s", "2s", "3s"]), size=self.random.choice([1, 2]),
            extra=self.random.choice(["", EXTRA]), **servers)
        if broken:
            text = self.random.choice(BREAKERS)(text)
        with open(self.file + ".new", "w") as out:
            out.write(text)
        os.replace(self.file + ".new", self.file)

    def close(self):
        for all_of in self.upstreams.values():
            for each in all_of:
                each.die()


class Log:
    """Counts lines and the ids in them, across rotations."""

    def __init__(self, folder):
        self.folder = folder
        self.rotations = 0
        self.lines = 0
        self.unreadable = []
        self.seen = {}  # client -> bytearray: by number of the request, how often it is in the log

    def rotate(self):
        """Moves the file away, as logrotate does; USR1 must follow. The previously moved file is read and removed."""
        self.read(glob.glob(f"{self.folder}/access.log.*"))
        self.rotations += 1
        os.rename(f"{self.folder}/access.log", f"{self.folder}/access.log.{self.rotations}")

    def read(self, files):
        for file in files:
            with open(file, encoding="utf-8", errors="replace") as log:
                for line in log:
                    self.count(line)
            os.remove(file)

    def count(self, line):
        self.lines += 1
        if not line.endswith("\n") or not line.startswith(("{", "127.0.0.1")):
            self.unreadable.append(line)
        if found := re.search(r"/([a-z]+\d)-(\d+)/", line):
            times, number = self.seen.setdefault(found[1], bytearray()), int(found[2])
            if len(times) <= number:
                times.extend(bytes(number + 1 - len(times)))
            times[number] = min(255, times[number] + 1)

    def all_read(self):
        self.read([*glob.glob(f"{self.folder}/access.log.*"), f"{self.folder}/access.log"])
