"""Gateways that share a store in Redis, for harnesses: their file, their clocks, and the values in Redis afterwards."""
import os
import subprocess
import tempfile

from live import Gateway
from redis_live import wait_for

LIBRARIES = ["/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1"]
WINDOW = "algorithm: fixed_window, align: first, limit: "


def configuration(url, chains, timeout="5s", outage="closed", more="", workers=2):
    """`chains`: {name: [rule]}; one route per chain, by its name. The route `plain` is limited in memory."""
    rules = "".join(f"  {name}:\n    store: shared\n    rules:\n" + "".join(f"      - {{ {rule} }}\n" for rule in of)
                    for name, of in chains.items())
    routes = "".join(f"  - {{ name: {name}, match: {{ path: /{name} }}, upstream: up, chains: [ {name} ] }}\n" for name in chains)
    return f"""workers: {workers}
listeners: [ {{ address: 127.0.0.1:0 }} ]
admin: {{ address: 127.0.0.1:0 }}
log: {{ access: {{ path: off }} }}
stores:
  local: {{ type: memory }}
  shared: {{ type: redis, url: "{url}", timeout: {timeout}, on_outage: {outage}, breaker: {{ failures: 5, probe_interval: 200ms }} }}
keys: {{ user: [ {{ header: X-API-Key }} ] }}
{more}chains:
  plain: {{ store: local, rules: [ {{ name: plain, key: user, {WINDOW}1000000/hour }} ] }}
{rules}upstreams: {{ up: {{ echo: true }} }}
routes:
  - {{ name: plain, match: {{ path: /plain }}, upstream: up, chains: [ plain ] }}
{routes}"""


def faketime():
    """libfaketime, for clocks that are wrong; None when it is not installed."""
    return next((each for each in LIBRARIES if os.path.exists(each)), None)


def clock_off_by(seconds, monotonic=True):
    if seconds == 0:
        return {}
    return {"LD_PRELOAD": faketime(), "FAKETIME": f"{seconds:+.3f}s", "DONT_FAKE_MONOTONIC": "0" if monotonic else "1"}


class Gateways:
    """Several gateways of one configuration, each with its own clock: [(seconds, monotonic too)]."""

    def __init__(self, binary, text, clocks):
        self.all = []
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
            file.write(text)
        self.file = file.name
        try:
            for seconds, monotonic in clocks:
                self.all.append(Gateway(binary, self.file, clock_off_by(seconds, monotonic)))
            for each in self.all:
                wait_for(lambda: self.is_connected(each), "a gateway does not connect to Redis")
        except BaseException:
            self.close()
            raise

    @staticmethod
    def is_connected(gateway):
        return gateway.metrics()['headgate_redis_ready_workers{store="shared"}'] == 2

    def are_connected(self):
        return all(self.is_connected(each) for each in self.all)

    @property
    def ports(self):
        return [each.port for each in self.all]

    def total(self, name):
        return sum(each.metrics().get(f'{name}{{store="shared"}}', 0) for each in self.all)

    def close(self):
        for each in self.all:
            each.end()
        os.unlink(self.file)


def can_be_used(binary, url):
    """Returns None, or the error of `check` for a store of this kind."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(configuration(url, {"some": [f"name: some, key: user, {WINDOW}1/hour"]}))
        file.flush()
        done = subprocess.run([binary, "check", file.name], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    lines = (done.stderr + done.stdout).strip().splitlines()
    return next((line for line in lines if "url" in line), lines[-1] if lines else "headgate check fails").replace(file.name + ":", "")


def words_of(value):
    """Returns the 7-byte numbers of a value, little-endian (limiter/redis/lua/take.lua)."""
    return [int.from_bytes(value[at:at + 7], "little") for at in range(0, len(value), 7)]


def counters(servers):
    """Returns {key: words} of all counters of gateways on these servers."""
    found = {}
    for server in servers:
        for key in server.ask("KEYS", "hg:1:{*"):
            value = server.ask("GET", key)
            if value is not None:
                found[key.decode()] = words_of(value)
    return found


def without_end(servers):
    """Returns the keys without a time to live."""
    return [key.decode() for server in servers for key in server.ask("KEYS", "*") if server.ask("PTTL", key) == -1]
