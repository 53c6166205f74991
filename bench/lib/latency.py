"""Latency of the contestants of a scenario: open loop, at a constant rate that is the same for all, half of what headgate carried.

What a request waits for the load or the origin does not count (bench/load/latency.hpp). The load is made by the origin's own thread,
which never sleeps, everybody has a real-time priority, and the proxy's core is kept awake: else what is measured is mostly how the
scheduler shares a core between load and origin, what else the machine runs, and how long a host takes to wake a core that halted.
What the host takes away meanwhile bench_load knows (bench/load/missing_time.hpp): requests that were due around it do not count, and
a round of which most do not is measured again. Where the rounds that were planned cannot tell headgate from the best peer, the two
are heard further, whoever is ahead, for as long as the run has time.
"""
import contextlib
import json
import os
import statistics
import time

from lib import judge, ratios
from lib.loads import Unmeasured, check_answers, load_options

FEW_REQUESTS = 1_000  # in a round of latency: where there are fewer, there are more rounds
LEAST_REQUESTS = 500  # in one: below, a hundredth of them is nothing to speak of, and a round is longer
LONGEST_ROUND = 0.5  # seconds
LONGEST_HEARD = 6  # seconds of latency in all: where rounds are long there are fewer
OVERLOADED_ROUNDS = 3  # of latency, for who carries less than the rate: its queue grows, and to wait for the end of it takes long
LEAST_CALM = 0.3  # of the requests of a round that counts
MOST_TRIES = 1.5  # times the rounds that are wanted
HEARD_FURTHER = (2, 4)  # times the rounds that are planned, where fewer cannot tell two apart
MOST_UNSTAMPED = 0.001  # of the answers
LEAST_ROUNDS = 3  # that count: with fewer, all are shown, and nothing is judged by them
REST = 0.06  # seconds between two rounds of latency: the kernel lets real-time processes have 95 % of a second, then others run for long


def measure_latencies(peers, scenario, contestants, rate, effort, progress, notes, until=0):
    """Every contestant is heard until enough of its rounds were calm, or it has been heard often enough. Those who are too close to call
    are heard further `until` then, by time.monotonic()."""
    rounds = latency_rounds(rate, effort)
    cores = (peers.cores.proxy if scenario.setting.workers == 1 else peers.cores.pair) | (peers.cores.redis if peers.redis else set())
    with awake(peers, cores) as spinning, undisturbed([peers.origin, *peers.redis, *(one.peer for one in contestants)], notes):
        def hear(one, wanted):
            progress.tell(f"{scenario.name}: latency at {rate:,.0f} requests/s, round {len(calm_rounds(one)) + 1} of {wanted}, {one.label}")
            time.sleep(REST)
            try:
                measure_latency(peers, scenario, one, rate, effort, filled_cores(peers, cores, one, spinning))
            except (Unmeasured, RuntimeError) as why:
                notes.append(f"{one.label}: a round of latency failed: {why}")
                return False
            return True

        hear_all(list(contestants), rounds, rate, hear)
        hear_close_ones(scenario, [one for one in contestants if carries(one, rate)], rate, rounds, hear, until)
    for one in contestants:
        note_unstamped(one, notes)
        keep_calm_rounds(one, carries(one, rate), notes)


def hear_all(heard, rounds, rate, hear):
    for number in range(int(rounds * MOST_TRIES)):
        if number == OVERLOADED_ROUNDS:
            heard = [one for one in heard if carries(one, rate)]
        heard = [one for one in heard if len(calm_rounds(one)) < rounds]
        for one in heard[::-1 if number % 2 else 1]:
            if not hear(one, rounds):
                one.latencies.clear()
                heard.remove(one)


def hear_close_ones(scenario, contestants, rate, rounds, hear, until):
    """Whether they are still too close is asked twice only: to look after each round and stop at a welcome moment would make chance a winner."""
    for times in HEARD_FURTHER:
        close = too_close(scenario, contestants, rate)
        for number in range(int(rounds * times * MOST_TRIES)):
            if time.monotonic() >= until:
                return
            heard = [one for one in close if len(calm_rounds(one)) < rounds * times]
            for one in heard[::-1 if number % 2 else 1]:
                if not hear(one, rounds * times):
                    return


def too_close(scenario, contestants, rate):
    """headgate and the best peer, where their rounds cannot tell whose p99 is lower; else nobody."""
    known = {one.label: one for one in contestants if len(calm_rounds(one)) >= LEAST_ROUNDS}
    p99 = {label: [each["p99"] for each in calm_rounds(one)] for label, one in known.items()}
    rows = {label: {"latency": {"p99": {"median": statistics.median(each)}}, "rate": {"median": rate}} for label, each in p99.items()}
    best = judge.best_peer_p99(scenario, rows, rate)
    if best is None or "headgate" not in known:
        return []
    _, low, high = ratios.apart(p99["headgate"], p99[best])
    return [known["headgate"], known[best]] if low <= 1 <= high else []


def calm_rounds(one):
    return [each for each in one.latencies if each["calm"] >= LEAST_CALM]


def keep_calm_rounds(one, judged, notes):
    """The others tell of the machine. Where most do, a note says so. Of who carries less than the rate nobody wants to know more."""
    tries, calm = len(one.latencies), calm_rounds(one)
    one.is_calm = not judged or len(calm) >= LEAST_ROUNDS
    if len(calm) >= LEAST_ROUNDS:
        one.latencies = calm
    if judged and (not one.is_calm or len(calm) < tries / 2):
        notes.append(f"{one.label}: in {tries - len(calm)} of {tries} rounds of latency somebody else had the cores too often"
                     + ("" if one.is_calm else "; the figures are of all rounds, and p99 is not judged"))


def note_unstamped(one, notes):
    """Where the kernel does not say when answers came, they count until they were read."""
    unstamped, answers = (sum(each[what] for each in one.latencies) for what in ("unstamped", "count"))
    if unstamped > answers * MOST_UNSTAMPED:
        notes.append(f"{one.label}: the kernel did not say when {unstamped:,} of its answers came: what the load took to read them is in its latency")


def carries(one, rate):
    return statistics.median(each["rate"] for each in one.rounds) >= rate


@contextlib.contextmanager
def awake(peers, cores):
    """The cores never halt: whenever the proxy sleeps, a process that does nothing runs until it is woken.

    A virtual core that halts is given away, and a busy host takes up to milliseconds to give it back. Who needs less CPU sleeps more
    often, and would pay most."""
    spinning = []
    for core in cores - peers.cores.origin:  # where the load is, nothing sleeps
        process = peers.group.start({core}, "sh", "-c", "while :; do :; done")
        os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))
        with contextlib.suppress(OSError), open(f"/proc/{process.pid}/autogroup", "w") as group:
            group.write("19")  # a session of its own is a group of its own, which counts as much as the proxy's where that has no real-time priority
        spinning.append(process)
    try:
        yield spinning
    finally:
        for process in spinning:
            peers.group.end(process)


def filled_cores(peers, cores, one, spinning):
    """For bench_load: cores that are never idle, and who fills them."""
    filling = [one.peer.process, peers.origin.process, *spinning, *(server.process for server in peers.redis)]
    return ["--cores", str(len(cores | peers.cores.origin)), *(word for process in filling for word in ("--fills", str(process.pid)))]


@contextlib.contextmanager
def undisturbed(measured, notes):
    """At a real-time priority, where that is allowed: whatever else runs on the machine waits until they sleep."""
    try:
        for peer in measured:
            set_priority(peer, os.SCHED_FIFO, 1)
    except PermissionError:
        notes.append("latency was measured at normal priority (a real-time one needs root): others on the machine may have been in the way")
    try:
        yield
    finally:
        for peer in measured:
            set_priority(peer, os.SCHED_OTHER, 0)


def set_priority(peer, policy, priority):
    """Of its threads, but for those that it has put behind the others itself."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    if peer.process.poll() is not None:
        return
    for task in map(int, os.listdir(f"/proc/{peer.process.pid}/task")):
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            if os.getpriority(os.PRIO_PROCESS, task) <= usual:
                os.sched_setscheduler(task, policy, os.sched_param(priority))


def measure_latency(peers, scenario, one, rate, effort, filled):
    warm = effort.latency_warm if scenario.refused == (0, 0) else effort.warm  # until the tokens are gone
    load = {**one.load, "rate": f"{rate:.1f}", "seconds": latency_seconds(rate, effort), "warm": warm}
    said = run_latency_load(peers, one.peer.port, load, filled)
    check_answers(scenario, said)
    calm = "calm_" if said["calm"] >= LEAST_CALM else ""
    late = said[calm + "latency_us"]
    one.latencies.append({**{p: late[p] for p in ("p50", "p99", "p999")}, "count": late["count"], "unfinished": said["unfinished"],
                          "late_p99": said["late_p99_us"], "p99_until_read": said[calm + "until_read_us"]["p99"],
                          "unstamped": said["unstamped"], "calm": said["calm"]})


def latency_seconds(rate, effort):
    """Of a round."""
    return min(max(effort.latency_seconds, LEAST_REQUESTS / rate), LONGEST_ROUND)


def latency_rounds(rate, effort):
    wanted = effort.latency_rounds * (2 if rate * effort.latency_seconds < FEW_REQUESTS else 1)
    return min(wanted, int(LONGEST_HEARD / latency_seconds(rate, effort)))


def run_latency_load(peers, port, load, filled):
    """Open loop, by the thread that is the origin too."""
    said = json.loads(peers.load_beside_origin(*load_options(port, load), *filled))
    if "failed" in said:
        raise Unmeasured(said["failed"])
    return said
