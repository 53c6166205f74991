"""The table of scenarios: which load, which configuration, which peers, and which targets.

`load` are options of bench_load. A target is the most that headgate's CPU per request (or p99) may be, as a ratio to a peer's. `itself`
compares headgate with headgate under a plainer load or setting, to show what a difficulty costs.
"""
import dataclasses

from lib.peers import Setting

PROXIES = ("nginx", "haproxy")


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    load: dict = dataclasses.field(default_factory=dict)
    setting: Setting = Setting()
    peers: tuple = PROXIES
    targets: dict = dataclasses.field(default_factory=dict)      # CPU per request
    p99_targets: dict = dataclasses.field(default_factory=dict)  # closed loop
    redis_target: float = None  # Redis's CPU per request, of nginx + Lua's
    itself: tuple = None        # (label, changes of the load, changes of the setting)
    refused: tuple = (0, 0)     # the share of answers that must be 429: at least, at most
    answer_bytes: int = None    # count requests by bytes: few and long, they do not end within the measured time
    prefill: int = 0            # number of keys that are requested once before anything is measured
    rounds: float = 1           # times the usual number of rounds
    seconds: float = 1          # times the usual length of a round
    open_loop: bool = True
    quick: bool = False         # part of --quick
    kind: str = "load"          # or idle: memory of silent clients


KEYS = {"keys": "uniform:10000"}

SCENARIOS = [
    Scenario("small", "128-byte answers, 64 keep-alive clients, no limits", peers=("floor", *PROXIES, "caddy")),
    Scenario("post", "POST of 1 KiB", {"method": "POST", "body": 1024}, quick=True, targets={"nginx": 0.8}),
    Scenario("large", "64 KiB answers", {"path": "/large"}, peers=("floor", *PROXIES), quick=True, targets={"haproxy": 0.8}),
    Scenario("huge", "10 MiB answers, 8 clients", {"path": "/huge", "connections": 8}, answer_bytes=10 << 20, open_loop=False),
    Scenario("connections", "a connection per request", {"close": True}, rounds=2, quick=True, targets={"nginx": 1.0}),
    Scenario("clients", "1,000 busy clients", {"connections": 1000}, seconds=4, quick=True, targets={"nginx": 0.8},
             p99_targets={"nginx": 1.0, "haproxy": 1.0}),
    Scenario("idle-10000", "64 busy clients beside 10,000 idle ones", {"idle": 10000}, Setting(clients=10_200), rounds=0.25, seconds=2),
    Scenario("limited", "two limits by API key, 10,000 keys, all admitted", KEYS, Setting(limits="allow"), peers=("floor", *PROXIES), rounds=2, quick=True,
             targets={"nginx": 0.8, "haproxy": 0.8}),
    Scenario("refused", "two limits, one key, all refused; nginx logs refusals, which is its default", {"keys": "one"}, Setting(limits="refuse"),
             refused=(0.99, 1), quick=True, targets={"nginx": 0.8}),
    Scenario("refused-quietly", "the same, nginx configured not to log refusals", {"keys": "one"}, Setting(limits="refuse-quietly"), refused=(0.99, 1)),
    Scenario("mixed", "two limits, 10,000 keys; a tenth of the requests has a key that is above its limit", {**KEYS, "spent": 0.1},
             Setting(limits="mixed"), refused=(0.05, 0.13)),
    Scenario("million-keys", "two limits, 1,000,000 known keys", {"keys": "uniform:1000000"}, Setting(limits="allow", keys=1_000_000), prefill=1_000_000),
    Scenario("routes", "10,000 routes, equally likely; beside ten routes", {"paths": 10_000}, Setting(routes=10_000),
             itself=("10 routes", {"paths": 10}, {"routes": 10})),
    Scenario("hot-key", "two workers, one key for all; beside 10,000 keys", {"keys": "one"}, Setting(limits="allow", workers=2), peers=(),
             itself=("10,000 keys", KEYS, {}), open_loop=False),
    Scenario("workers", "two workers; beside one worker on the same cores", {}, Setting(workers=2), peers=(), itself=("one worker", {}, {"workers": 1}),
             open_loop=False),
    Scenario("redis", "two limits, exact, in one Redis server", KEYS, Setting(limits="allow", store="redis"), peers=("nginx+lua",), quick=True,
             targets={"nginx+lua": 0.65}, redis_target=0.4),
    Scenario("redis-cluster", "two limits, exact, in a Redis cluster of three masters", KEYS, Setting(limits="allow", store="cluster"), peers=()),
    Scenario("idle", "memory of a keep-alive client that is silent after one request", {}, Setting(clients=10_200), kind="idle", quick=True),
]

IDLE_TARGET_KIB = 2.5
BY_NAME = {each.name: each for each in SCENARIOS}
