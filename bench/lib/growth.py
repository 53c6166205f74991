"""How cost grows with keys, rules, routes, clients and header fields through the gateway, and with keys and rules in the limiter alone
(bench/micro). A curve is {title, by, unit, points: [[x, y], ...]}, with a note for each point that is missing."""
import json
import os
import statistics

from lib import measure
from lib.peers import Setting

ALLOWED = {"keys": "uniform:10000"}

# title, what grows, points, x -> (load, setting, number of keys to request first)
CURVES = [
    ("Keys", "keys", [1_000, 10_000, 100_000, 1_000_000],
     lambda n: ({"keys": f"uniform:{n}"}, Setting(limits="allow", keys=n), n)),
    ("Rules of a chain", "rules", [1, 2, 4, 8, 16], lambda n: (ALLOWED, Setting(limits="allow", rules=n), 0)),
    ("Routes", "routes", [10, 100, 1_000, 10_000], lambda n: ({"paths": n}, Setting(routes=n), 0)),
    ("Busy clients", "clients", [1, 10, 100, 1_000, 10_000], lambda n: ({"connections": n}, Setting(clients=n), 0)),
    ("Header fields", "fields", [0, 8, 16, 32, 64], lambda n: ({"headers": n}, Setting(), 0)),
]


def run(peers, micro, rounds, seconds, most, progress):
    """All curves; points beyond `most` are left out."""
    curves = []
    for title, by, points, job in CURVES:
        curve = {"title": title, "by": by, "unit": "CPU µs per request", "points": [], "notes": []}
        for x in points:
            if x > most:
                continue
            progress.tell(f"growth: {x:,} {by}")
            try:
                curve["points"].append([x, one_point(peers, job(x), rounds, seconds)])
            except RuntimeError as why:
                curve["notes"].append(f"{x:,} {by}: not measured: {why}")
        curves.append(curve)
    return curves + limiter_alone(peers, micro, most, progress)


def one_point(peers, job, rounds, seconds):
    load, setting, fill = job
    peer = peers.start("headgate", setting)
    try:
        if fill:
            measure.run_load(peers, peer.port, {"keys": f"sequence:{fill}"}, warm=0, most=fill)
        seen = []
        for _ in range(rounds):
            said = measure.run_load(peers, peer.port, load, [peer], seconds=seconds, warm=0.3)
            if set(said["statuses"]) != {"200"}:
                raise RuntimeError(f"answers were {said['statuses']}")
            seen.append(said["cpu_ns"][0] / said["requests"] / 1000)
        return statistics.median(seen)
    finally:
        peers.end(peer)
        measure.remove_logs(peers.group.folder)


def limiter_alone(peers, micro, most, progress):
    """What bench/micro measures without a gateway: up to ten million keys, if there is memory for them."""
    if not os.path.exists(micro):
        return []
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") / 2**30
    keys = min(most * 10, 10_000_000 if gib > 4 else 1_000_000)
    progress.tell(f"growth: the limiter alone, up to {keys:,} keys")
    return json.loads(peers.group.output(peers.cores.proxy, micro, "--growth", str(keys), timeout=600))
