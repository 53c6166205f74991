"""Runs one scenario: starts its contestants, loads them in turn, and returns the figures.

CPU a request is the CPU time of the proxy's process in the measured time, divided by the requests answered in it. bench_load
itself reads it at both ends from /proc/PID/task/*/schedstat (nanoseconds); that it agrees with utime + stime of
/proc/PID/stat (ticks of 10 ms) is checked each time. Latency is measured apart (lib/latency.py).
"""
import dataclasses
import os
import re
import statistics
import subprocess
import sys
import time

from lib.latency import carries, measure_latencies
from lib.loads import Unmeasured, check_answers, run_load
from lib.peers import Skipped, most_clients_of_haproxy

TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much is measured."""
    rounds: int
    starts: int  # contestants are started anew so many times: what a process met when it began must not decide
    seconds: float
    latency_rounds: int
    latency_seconds: float
    idle_clients: int
    warm: float = 0.1
    latency_warm: float = 0.05

    def for_scenario(self, scenario):
        """More rounds where a target is close; fewer and longer ones where thousands of clients connect before each."""
        if scenario.close:
            return dataclasses.replace(self, rounds=self.rounds * 2, starts=self.starts * 2)
        if scenario.load.get("idle", 0) < 5_000:
            return self
        return dataclasses.replace(self, rounds=max(2, self.rounds // 4), starts=-(-self.starts // 2), seconds=self.seconds * 2,
                                   latency_rounds=-(-self.latency_rounds // 2), latency_seconds=self.latency_seconds * 2)


# Many short rounds rather than a few long ones: what else the machine does comes and goes within seconds, and in a round
# everybody is measured on the machine as it is then.
# Rounds of latency are shorter still: a shared machine takes a core away for a millisecond or more about once a second. Where it tells,
# that is left out; where it does not, who loses a hundredth of a round that way has that pause as its p99. In a tenth of a second it
# happens to few rounds, and their median does not know of it.
QUICK = Effort(rounds=5, starts=1, seconds=0.15, latency_rounds=5, latency_seconds=0.1, idle_clients=2_000)
FULL = Effort(rounds=24, starts=4, seconds=0.2, latency_rounds=30, latency_seconds=0.1, idle_clients=10_000)


class Contestant:
    def __init__(self, label, begin, load):
        self.label, self.begin, self.load = label, begin, load
        self.peer = begin()
        self.rounds, self.latencies = [], []

    def start_anew(self, peers):
        peers.end(self.peer)
        self.peer = self.begin()


def utime_and_stime(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values), "rounds": values}


def measure_round(peers, scenario, one, effort):
    watched = [one.peer, *peers.redis]
    ticks = utime_and_stime(one.peer.process.pid)
    began = time.monotonic()
    said = run_load(peers, one.peer.port, one.load, watched, seconds=effort.seconds, warm=effort.warm)
    ticks = utime_and_stime(one.peer.process.pid) - ticks
    check_answers(scenario, said)
    requests = said["bytes"] / scenario.answer_bytes if scenario.answer_bytes else said["requests"]
    cpu = said["cpu_ns"][0] / 1e9
    # The ticks also saw connecting and warming up: they may be more, by as much as there was time for, but not less.
    if ticks < cpu * 0.95 - 0.03 or ticks > cpu + (time.monotonic() - began - said["seconds"]) * os.cpu_count() + 0.03:
        print(f"  {one.label}: utime + stime say {ticks:.2f} s, schedstat {cpu:.2f} s", file=sys.stderr)
    one.rounds.append({"us": cpu / requests * 1e6, "rate": requests / said["seconds"], "busy": cpu / said["seconds"],
                       "redis_us": sum(said["cpu_ns"][1:]) / requests / 1e3, "rss_mib": resident_kib(one.peer.process.pid) / 1024})


def start_contestants(peers, scenario, notes):
    wanted = [("headgate", "headgate", {}, {}), *((name, name, {}, {}) for name in scenario.peers)]
    if scenario.itself:
        label, load, setting = scenario.itself
        wanted.append((label, "headgate", load, setting))
    started = []
    for label, name, load, setting in wanted:
        def begin(name=name, setting=dataclasses.replace(scenario.setting, **setting)):
            return start_one(peers, name, setting, may_use_both=scenario.setting.workers != 1)
        try:
            started.append(Contestant(label, begin, fitting(label, {**scenario.load, **load}, notes)))
        except (Skipped, FileNotFoundError) as why:
            notes.append(f"{label}: {why}")
            if label == "headgate":
                break
    return started


def start_one(peers, name, setting, may_use_both):
    peer = peers.start(name, setting)
    if may_use_both and name == "headgate":
        for task in os.listdir(f"/proc/{peer.process.pid}/task"):  # one worker or two, both may use the same cores
            os.sched_setaffinity(int(task), peers.cores.pair)
    return peer


def fitting(label, load, notes):
    """The load, less the idle clients that HAProxy cannot hold within the limit of open files."""
    idle = min(load.get("idle", 0), most_clients_of_haproxy(load.get("idle", 0)) - 300)
    if label != "haproxy" or idle >= load.get("idle", 0):
        return load
    notes.append(f"{label}: {idle:,} idle clients, since it may open only so many files here")
    return {**load, "idle": idle}


def run_scenario(peers, scenario, effort, progress, until=0):
    """Everything about one scenario, as plain data. Who is too close to call in latency is heard further `until` then."""
    notes = []
    peers.start_redis(scenario.setting.store)
    contestants = start_contestants(peers, scenario, notes)
    try:
        if scenario.kind == "idle":
            measure_idle(peers, contestants, effort, progress)
        elif contestants:
            measure_load(peers, scenario, contestants, effort, progress, notes, until)
        return summary(scenario, contestants, notes)
    finally:
        for one in contestants:
            peers.end(one.peer)
        peers.end_redis()
        remove_logs(peers.group.folder)


def warm_up(peers, scenario, contestants, progress, notes):
    for one in list(contestants):
        try:
            if scenario.prefill:
                progress.tell(f"{scenario.name}: {one.label} gets to know {scenario.prefill:,} keys")
                run_load(peers, one.peer.port, {**one.load, "keys": f"sequence:{scenario.prefill}"}, [], warm=0, most=scenario.prefill)
            run_load(peers, one.peer.port, one.load, [], seconds=0.3)
        except RuntimeError as why:
            drop(peers, contestants, one, why, notes)


def measure_load(peers, scenario, contestants, effort, progress, notes, until):
    effort = effort.for_scenario(scenario)
    measure_rounds(peers, scenario, contestants, effort, progress, notes)
    if not scenario.latency or not contestants or contestants[0].label != "headgate":
        return
    rate = statistics.median(each["rate"] for each in contestants[0].rounds) / 2
    measure_latencies(peers, scenario, contestants, rate, effort, progress, notes, until)
    contestants[0].latency_rate = rate
    for one in contestants:
        if not carries(one, rate):
            notes.append(f"{one.label} carries less than that rate: its latency is that of a queue that grows")


def measure_rounds(peers, scenario, contestants, effort, progress, notes):
    """CPU and capacity, closed loop."""
    starts = 1 if scenario.prefill else effort.starts  # a million keys take their time
    warm_up(peers, scenario, contestants, progress, notes)
    for number in range(effort.rounds):
        if number > 0 and number * starts % effort.rounds < starts:
            for one in contestants:
                one.start_anew(peers)
            warm_up(peers, scenario, contestants, progress, notes)
        for one in contestants[::-1 if number % 2 else 1]:  # who comes first changes: nobody has always the same one before it
            progress.tell(f"{scenario.name}: round {number + 1} of {effort.rounds}, {one.label}")
            try:
                measure_round(peers, scenario, one, effort)
            except (Unmeasured, RuntimeError) as why:
                drop(peers, contestants, one, why, notes)


def drop(peers, contestants, one, why, notes):
    notes.append(f"{one.label}: not measured: {why}")
    contestants.remove(one)
    peers.end(one.peer)


def measure_idle(peers, contestants, effort, progress):
    """Memory of silent clients: what the process grows by, and the CPU it uses while they say nothing."""
    for one in contestants:
        clients = effort.idle_clients
        if one.label == "haproxy":
            clients = fitting(one.label, {"idle": clients}, [])["idle"]
        progress.tell(f"idle: {clients:,} clients of {one.label}")
        pid = one.peer.process.pid
        run_load(peers, one.peer.port, {}, [], connections=100, seconds=0.2)  # what is allocated once is there
        before = resident_kib(pid)
        command = [os.path.join(peers.tools, "bench_load"), "--port", str(one.peer.port), "--connections", "0", "--idle", str(clients), "--hold"]
        holding = peers.group.start(peers.cores.load, *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if not holding.stdout.readline():
            raise RuntimeError(f"could not hold {clients} clients: {peers.group.last_words(command[0])}")
        time.sleep(2.5)  # what is freed late is free
        cpu = utime_and_stime(pid)
        time.sleep(1)
        one.idle = {"kib": (resident_kib(pid) - before) / clients, "clients": clients, "cpu_s": utime_and_stime(pid) - cpu}
        peers.group.end(holding)


def summary(scenario, contestants, notes):
    rows = {}
    for one in contestants:
        row = rows[one.label] = {}
        if hasattr(one, "idle"):
            row["idle"] = one.idle
        if one.rounds:
            for figure in ("us", "rate", "busy", "rss_mib"):
                row[figure] = spread([each[figure] for each in one.rounds])
            if scenario.setting.store != "memory":
                row["redis_us"] = spread([each["redis_us"] for each in one.rounds])
        if one.latencies:
            row["latency"] = {p: spread([each[p] for each in one.latencies]) for p in ("p50", "p99", "p999")}
            row["latency"]["count"] = sum(each["count"] for each in one.latencies)
            row["latency"]["unfinished"] = sum(each["unfinished"] for each in one.latencies)
            row["latency"]["is_calm"] = one.is_calm
            for figure in ("late_p99", "p99_until_read", "calm"):
                row["latency"][figure] = spread([each[figure] for each in one.latencies])
    return {"title": scenario.title, "rows": rows, "notes": notes,
            "latency_rate": getattr(contestants[0], "latency_rate", None) if contestants else None}


def remove_logs(folder):
    """Access logs of a minute's load are large."""
    for name in os.listdir(folder):
        if name.endswith((".log", ".err")):
            os.remove(os.path.join(folder, name))
