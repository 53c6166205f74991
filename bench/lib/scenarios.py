"""The table of scenarios: what is asked of whom, and which ratios headgate has set itself as targets.

`load` are options of bench_load. A target is the most that headgate's CPU a request may be, in those of a peer; `itself`
compares headgate with headgate under a plainer load or setting, to show what a difficulty costs.
"""
import dataclasses

from lib.peers import Setting

PROXIES = ("nginx", "haproxy", "caddy")
LIMITERS = ("nginx", "haproxy")


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    load: dict = dataclasses.field(default_factory=dict)
    setting: Setting = Setting()
    peers: tuple = PROXIES
    targets: dict = dataclasses.field(default_factory=dict)
    redis_target: float = None  # of Redis's CPU a request, beside nginx + Lua
    itself: tuple = None        # (what it is, changes of the load, changes of the setting)
    refused: tuple = (0, 0)     # the share of answers that must be 429: at least, at most
    answer_bytes: int = None    # count requests by bytes: few and long, they do not end within the measured time
    prefill: int = 0            # keys that are asked for once before anything is measured
    close: bool = False         # a target that there is little room below: twice the rounds
    latency: bool = True
    quick: bool = False
    kind: str = "load"          # or idle: memory of silent clients


KEYS = {"keys": "uniform:10000"}

SCENARIOS = [
    Scenario("small", "128-byte answers, 64 keep-alive clients, no limits", peers=("floor", *PROXIES), quick=True,
             targets={"nginx": 0.85, "haproxy": 0.80}),
    Scenario("post", "POST of 1 KiB", {"method": "POST", "body": 1024}, quick=True, targets={"nginx": 0.85}),
    Scenario("large", "64 KiB answers", {"path": "/large"}, peers=("floor", *PROXIES), quick=True, targets={"haproxy": 0.9}),
    Scenario("huge", "10 MiB answers, 8 clients", {"path": "/huge", "connections": 8}, peers=("floor", *PROXIES), answer_bytes=10 << 20),
    Scenario("connections", "a connection a request", {"close": True}, quick=True, targets={"nginx": 0.85}),
    Scenario("clients", "1,000 busy clients", {"connections": 1000}, peers=LIMITERS, close=True, quick=True, targets={"nginx": 0.7}),
    Scenario("idle-1000", "64 busy clients beside 1,000 idle ones", {"idle": 1000}),
    Scenario("idle-10000", "64 busy clients beside 10,000 idle ones", {"idle": 10000}, Setting(clients=10_200)),
    Scenario("limited", "two limits by API key, 10,000 keys, all allowed", KEYS, Setting(limits="allow"), peers=("floor", *LIMITERS), quick=True, close=True,
             targets={"floor": 1.2, "nginx": 0.8, "haproxy": 0.75}),
    Scenario("refused", "two limits, one key, all refused; nginx logs refusals, as it does by itself", {"keys": "one"}, Setting(limits="refuse"),
             peers=LIMITERS, refused=(0.99, 1), quick=True, targets={"nginx": 0.7}),
    Scenario("refused-quietly", "the same, nginx told not to log refusals", {"keys": "one"}, Setting(limits="refuse-quietly"), peers=LIMITERS,
             refused=(0.99, 1)),
    Scenario("mixed", "two limits, 10,000 keys; a tenth of the requests has a key that is above its limit", {**KEYS, "spent": 0.1},
             Setting(limits="mixed"), peers=LIMITERS, refused=(0.05, 0.13), quick=True),
    Scenario("zipf", "two limits, 100,000 keys, some far more often than others (Zipf)", {"keys": "zipf:100000"}, Setting(limits="allow"),
             peers=LIMITERS),
    Scenario("million-keys", "two limits, 1,000,000 keys, each known", {"keys": "uniform:1000000"}, Setting(limits="allow", keys=1_000_000),
             peers=LIMITERS, prefill=1_000_000),
    Scenario("routes", "10,000 routes, equally likely; beside ten of them", {"paths": 10_000}, Setting(routes=10_000), peers=LIMITERS,
             itself=("10 routes", {"paths": 10}, {"routes": 10}), targets={"itself": 2.0}),
    Scenario("hot-key", "two workers, one key for all; beside 10,000 keys", {"keys": "one"}, Setting(limits="allow", workers=2), peers=(), quick=True,
             itself=("10,000 keys", KEYS, {}), targets={"itself": 1.15}),
    Scenario("workers", "two workers; beside one on the same cores", {}, Setting(workers=2), peers=(), quick=True, latency=False,
             itself=("one worker", {}, {"workers": 1}), targets={"itself": 1.05}),
    Scenario("redis", "two limits, exact, in one Redis server", KEYS, Setting(limits="allow", store="redis"), peers=("nginx+lua",), quick=True,
             targets={"nginx+lua": 0.6}, redis_target=0.4),
    Scenario("redis-cluster", "two limits, exact, in a Redis cluster of three masters", KEYS, Setting(limits="allow", store="cluster"), peers=()),
    Scenario("idle", "memory of a keep-alive client that is silent after one request", {}, Setting(clients=10_200), kind="idle", quick=True),
]

IDLE_TARGET_KIB = 1.2
BY_NAME = {each.name: each for each in SCENARIOS}
