"""Runs one scenario: starts its contestants, loads them in turn, and returns the figures as plain data.

CPU per request is the CPU time of the proxy's process in the measured time, divided by the requests answered in it. bench_load reads it at
both ends from /proc/PID/task/*/schedstat (nanoseconds); that it agrees with utime + stime of /proc/PID/stat (ticks of 10 ms) is checked.
Latency is what a client sees: in the closed loop from sending to the last byte read, in the open loop from the due time.
"""
import contextlib
import dataclasses
import json
import os
import re
import statistics
import subprocess
import sys
import time

from lib.peers import Skipped, most_clients_of_haproxy

TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass(frozen=True)
class Effort:
    rounds: int  # closed loop
    starts: int  # all processes are started anew so many times, because what a process finds at its start has an influence
    seconds: float
    open_rounds: int  # open loop
    open_seconds: float
    idle_clients: int
    warm: float = 0.1

    def for_scenario(self, scenario):
        rounds = max(3, round(self.rounds * scenario.rounds))
        return dataclasses.replace(self, rounds=rounds, starts=1 if scenario.prefill else min(self.starts, rounds),
                                   seconds=self.seconds * scenario.seconds)


# Many short rounds instead of a few long ones: the load of a shared machine changes within seconds, and in one round all contestants
# meet the same machine. Rounds of the open loop are shorter still: a host pauses a virtual core for a millisecond or more about once per
# second, which is the p99 of a round that it hits. It hits few rounds of a tenth of a second, and the median ignores those.
QUICK = Effort(rounds=6, starts=1, seconds=0.15, open_rounds=5, open_seconds=0.1, idle_clients=2_000)
FULL = Effort(rounds=24, starts=4, seconds=0.2, open_rounds=24, open_seconds=0.1, idle_clients=10_000)


class Unmeasured(RuntimeError):
    """The answers were not those that the scenario is about."""


class Contestant:
    def __init__(self, label, begin, load):
        self.label, self.begin, self.load = label, begin, load
        self.peer = begin()
        self.rounds, self.open_rounds, self.idle = [], [], None

    def start_anew(self, peers):
        peers.end(self.peer)
        self.peer = self.begin()

    def median(self, what):
        return statistics.median(each[what] for each in self.rounds)


def load_options(port, load):
    options = ["--port", str(port)]
    for name, value in load.items():
        options += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return options


def run_load(peers, port, load, watch=(), **more):
    """One run of bench_load; its JSON."""
    watched = [word for peer in watch for word in ("--watch", str(peer.process.pid))]
    command = [os.path.join(peers.tools, "bench_load"), *load_options(port, {**load, **more}), *watched]
    return json.loads(peers.group.output(peers.cores.load, *command, timeout=300))


def check_answers(scenario, said):
    """Refusals only where the scenario expects them, and hardly any error."""
    answered = sum(said["statuses"].values())
    refused = said["statuses"].get("429", 0)
    good = sum(n for status, n in said["statuses"].items() if status[0] == "2")
    least, most = scenario.refused
    if answered == 0 or not least <= refused / answered <= most or good + refused < answered * 0.999 or said["errors"] > answered * 0.001:
        raise Unmeasured(f"unexpected answers: {said['statuses']}, {said['errors']} broken connections")


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
    """Closed loop: CPU, capacity, latency and memory."""
    pid = one.peer.process.pid
    ticks, began = utime_and_stime(pid), time.monotonic()
    said = run_load(peers, one.peer.port, one.load, [one.peer, *peers.redis], seconds=effort.seconds, warm=effort.warm)
    ticks, elapsed = utime_and_stime(pid) - ticks, time.monotonic() - began
    check_answers(scenario, said)
    requests = said["bytes"] / scenario.answer_bytes if scenario.answer_bytes else said["requests"]
    cpu = said["cpu_ns"][0] / 1e9
    # The ticks include connecting and warming up: they may be more, by at most the CPU time that was available, but not less.
    if ticks < cpu * 0.95 - 0.03 or ticks > cpu + (elapsed - said["seconds"]) * os.cpu_count() + 0.03:
        print(f"  {one.label}: utime + stime is {ticks:.2f} s, schedstat {cpu:.2f} s", file=sys.stderr)
    one.rounds.append({"us": cpu / requests * 1e6, "rate": requests / said["seconds"], "busy": cpu / said["seconds"],
                       "p50_us": said["latency_us"]["p50"], "p99_us": said["latency_us"]["p99"],
                       "redis_us": sum(said["cpu_ns"][1:]) / requests / 1e3, "rss_mib": resident_kib(pid) / 1024})


def start_contestants(peers, scenario, notes):
    wanted = [(label, label, {}, {}) for label in (*peers.binaries, *scenario.peers)]
    if scenario.itself:
        label, load, setting = scenario.itself
        wanted.append((label, "headgate", load, setting))
    started = []
    for label, name, load, setting in wanted:
        def begin(name=name, setting=dataclasses.replace(scenario.setting, **setting)):
            return peers.start(name, setting, on_both_cores=scenario.setting.workers != 1)
        try:
            started.append(Contestant(label, begin, fitting(label, {**scenario.load, **load}, notes)))
        except (Skipped, FileNotFoundError) as why:
            notes.append(f"{label}: {why}")
            if label == "headgate":
                break
    return started


def fitting(label, load, notes):
    """The load, with fewer idle clients for HAProxy when the limit of open files does not allow it more."""
    idle = min(load.get("idle", 0), most_clients_of_haproxy(load.get("idle", 0)) - 300)
    if label != "haproxy" or idle >= load.get("idle", 0):
        return load
    notes.append(f"{label}: {idle:,} idle clients, because of the limit of open files")
    return {**load, "idle": idle}


def run_scenario(peers, scenario, effort, progress):
    notes = []
    effort = effort.for_scenario(scenario)
    peers.start_redis(scenario.setting.store)
    contestants = start_contestants(peers, scenario, notes)
    rate = None
    try:
        if scenario.kind == "idle":
            measure_idle(peers, contestants, effort, progress)
        elif contestants:
            measure_rounds(peers, scenario, contestants, effort, progress, notes)
            if scenario.open_loop and contestants and contestants[0].label == "headgate":
                rate = contestants[0].median("rate") / 2
                measure_open_loop(peers, scenario, contestants, rate, effort, progress, notes)
        return summary(scenario, contestants, notes, rate)
    finally:
        for one in contestants:
            peers.end(one.peer)
        peers.end_redis()
        remove_logs(peers.group.folder)


def warm_up(peers, scenario, contestants, progress, notes):
    for one in list(contestants):
        try:
            if scenario.prefill:
                progress.tell(f"{scenario.name}: {scenario.prefill:,} keys into {one.label}")
                run_load(peers, one.peer.port, {**one.load, "keys": f"sequence:{scenario.prefill}"}, warm=0, most=scenario.prefill)
            run_load(peers, one.peer.port, one.load, seconds=0.3)
        except RuntimeError as why:
            drop(peers, contestants, one, why, notes)


def measure_rounds(peers, scenario, contestants, effort, progress, notes):
    """Closed loop, all contestants in every round."""
    warm_up(peers, scenario, contestants, progress, notes)
    for number in range(effort.rounds):
        if number > 0 and number * effort.starts % effort.rounds < effort.starts:
            for one in contestants:
                one.start_anew(peers)
            warm_up(peers, scenario, contestants, progress, notes)
        for one in contestants[::-1 if number % 2 else 1]:  # the order alternates: no contestant always follows the same one
            progress.tell(f"{scenario.name}: round {number + 1} of {effort.rounds}, {one.label}")
            try:
                measure_round(peers, scenario, one, effort)
            except RuntimeError as why:
                drop(peers, contestants, one, why, notes)


def measure_open_loop(peers, scenario, contestants, rate, effort, progress, notes):
    """Latency at a rate that is the same for all. A contestant that carries less than the rate has no latency but a growing queue."""
    able = [one for one in contestants if one.median("rate") >= rate]
    warm = effort.warm if scenario.refused == (0, 0) else effort.warm * 3  # until the tokens are used up
    with awake(peers):
        for number in range(effort.open_rounds):
            for one in able[::-1 if number % 2 else 1]:
                progress.tell(f"{scenario.name}: {rate:,.0f} requests/s, round {number + 1} of {effort.open_rounds}, {one.label}")
                try:
                    load = {**one.load, "rate": f"{rate:.1f}", "seconds": effort.open_seconds, "warm": warm}
                    said = json.loads(peers.load_in_origin(*load_options(one.peer.port, load)))
                    if "failed" in said:
                        raise Unmeasured(said["failed"])
                    check_answers(scenario, said)
                    one.open_rounds.append(said["latency_us"])
                except RuntimeError as why:
                    notes.append(f"{one.label}: a round of the open loop failed: {why}")


@contextlib.contextmanager
def awake(peers):
    """Keeps the proxy's core from halting: a process of the idle class runs whenever the proxy sleeps. A busy host takes up to milliseconds
    to resume a virtual core that has halted, and a proxy that needs less CPU sleeps more often."""
    spinning = []
    for core in peers.cores.proxy - peers.cores.load:
        process = peers.group.start({core}, "sh", "-c", "while :; do :; done")
        os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))
        with contextlib.suppress(OSError), open(f"/proc/{process.pid}/autogroup", "w") as group:
            group.write("19")  # its session is a scheduling group of its own, which would count as much as the proxy's
        spinning.append(process)
    try:
        yield
    finally:
        for process in spinning:
            peers.group.end(process)


def drop(peers, contestants, one, why, notes):
    notes.append(f"{one.label}: not measured: {why}")
    contestants.remove(one)
    peers.end(one.peer)


def measure_idle(peers, contestants, effort, progress):
    """Memory per silent client: what the process grows by. And the CPU that it uses while they are silent."""
    for one in contestants:
        clients = fitting(one.label, {"idle": effort.idle_clients}, [])["idle"]
        progress.tell(f"idle: {clients:,} clients of {one.label}")
        pid = one.peer.process.pid
        run_load(peers, one.peer.port, {}, connections=100, seconds=0.2)  # memory that is allocated once is there
        before = resident_kib(pid)
        command = [os.path.join(peers.tools, "bench_load"), "--port", str(one.peer.port), "--connections", "0", "--idle", str(clients), "--hold"]
        holding = peers.group.start(peers.cores.load, *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if not holding.stdout.readline():
            raise RuntimeError(f"could not hold {clients} clients: {peers.group.last_words(command[0])}")
        time.sleep(2.5)  # memory that is freed late is free
        cpu = utime_and_stime(pid)
        time.sleep(1)
        one.idle = {"kib": (resident_kib(pid) - before) / clients, "clients": clients, "cpu_s": utime_and_stime(pid) - cpu}
        peers.group.end(holding)


def summary(scenario, contestants, notes, rate):
    rows = {}
    for one in contestants:
        row = rows[one.label] = {"idle": one.idle} if one.idle else {}
        if one.rounds:
            figures = ("us", "rate", "busy", "rss_mib", "p50_us", "p99_us", *(("redis_us",) if scenario.setting.store != "memory" else ()))
            row.update({figure: spread([each[figure] for each in one.rounds]) for figure in figures})
        if one.open_rounds:
            row.update({f"open_{p}_us": spread([each[p] for each in one.open_rounds]) for p in ("p50", "p99")})
    return {"title": scenario.title, "rows": rows, "notes": notes, "open_rate": rate}


def remove_logs(folder):
    """Access logs of a minute's load are large."""
    for name in os.listdir(folder):
        if name.endswith((".log", ".err")):
            os.remove(os.path.join(folder, name))
