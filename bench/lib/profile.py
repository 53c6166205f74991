"""A flame graph of the request path, by perf; with the kernel's part where perf may see it. It also prints the functions that cost most."""
import os
import re
import shutil
import subprocess
import time

from lib import flame, measure, peers, processes
from lib.scenarios import BY_NAME

SECONDS = 10


def run(group, chosen, path, progress):
    scenario = BY_NAME[(chosen.scenario or ["limited"])[0]]
    if scenario.kind != "load":
        raise RuntimeError(f"{scenario.name} has no load to profile")
    parts = peers.Peers(group, processes.Cores(), {"headgate": chosen.headgate}, chosen.tools)
    parts.start_redis(scenario.setting.store)
    event = perf_event(group)
    if not event:
        raise RuntimeError("perf does not work on this machine (script/setup bench installs it; it may need root)")
    root = record(group, parts, scenario, event, progress)
    progress.clear()
    if root.cost == 0:
        raise RuntimeError("no samples")
    with open(path, "w") as out:
        out.write(flame.draw(root, f"headgate, {scenario.name}: {scenario.title} (perf, {event})"))
    for name, cost in heaviest(root):
        print(f"{cost / root.cost:7.1%}  {name}")
    print(f"flame graph: {path} (perf, {event})")


def perf_event(group):
    """The event that perf can count here: cycles on most physical machines, the clock on most virtual ones, or None."""
    if not shutil.which("perf"):
        return None
    for event in ("cycles", "cpu-clock", "cycles:u", "cpu-clock:u"):
        data = group.path("try.data")
        tried = subprocess.run(["perf", "record", "-q", "-N", "-e", event, "-g", "-o", data, "--", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"],
                               capture_output=True)
        if tried.returncode == 0:
            seen = subprocess.run(["perf", "script", "-i", data], capture_output=True)
            if seen.returncode == 0 and seen.stdout.strip():  # perf may use another event than the requested one
                return subprocess.run(["perf", "evlist", "-i", data], capture_output=True, text=True).stdout.split()[0]
    return None


def record(group, parts, scenario, event, progress):
    gateway = parts.start("headgate", scenario.setting, on_both_cores=scenario.setting.workers != 1)
    progress.tell(f"profile: {scenario.name} under perf, {SECONDS} s")
    data = group.path("perf.data")
    measure.run_load(parts, gateway.port, scenario.load, seconds=0.5)
    # By the unwinding tables: frame pointers are faster, but the system calls of the C library have none.
    recording = group.start(parts.cores.load, "perf", "record", "-q", "-N", "-e", event,
                            "-F", "499", "--call-graph", "dwarf,8192", "-p", str(gateway.process.pid), "-o", data)
    time.sleep(0.5)
    measure.run_load(parts, gateway.port, scenario.load, seconds=SECONDS)
    group.end(recording)  # on SIGTERM perf writes its file
    progress.tell("profile: reading the samples")
    script = group.output(None, "perf", "script", "-i", data, "-F", "comm,ip,sym,dso", "--no-inline")
    return fold(script)


def fold(script):
    root = flame.Frame()
    stack = []
    for line in script.splitlines() + [""]:
        if not line.strip():
            if stack:
                root.add(reversed(stack), 1)
            stack = []
        elif line[0] in " \t":
            found = re.match(r"\s*[0-9a-f]+ (.*) \(([^()]*)\)$", line)
            if found:
                name, where = found.groups()
                stack.append(readable(name, os.path.basename(where)) + ("_[k]" if "kernel" in where else ""))
    return root


def readable(name, where):
    """The name of a function without arguments and template parameters, which are long and say little."""
    if name == "[unknown]":
        return f"({where.strip('[]') or 'unknown'})"
    name = re.sub(r"\+0x[0-9a-f]+$", "", name)  # an offset
    name = strip_nested(strip_nested(name.replace("(anonymous namespace)", "{anonymous}").replace("operator()", "operator{}"), "<", ">"), "(", ")")
    name = name.replace(" [clone .actor]", "").replace(" [clone .isra.0]", "").replace("::{anonymous}", "")
    return re.sub(r"\s*\[clone [^]]*\]", "", name).strip() or "?"


def strip_nested(text, opening, closing):
    out, depth = [], 0
    for i, c in enumerate(text):
        if c == opening and not text[:i].endswith(("operator", "operator<", "-")):
            depth += 1
        elif c == closing and depth > 0:
            depth -= 1
        elif depth == 0:
            out.append(c)
    return "".join(out)


def heaviest(root, most=15):
    """The functions with the most samples of their own."""
    own = {}

    def visit(name, frame):
        inner = sum(each.cost for each in frame.callees.values())
        own[name] = own.get(name, 0) + frame.cost - inner
        for callee, each in frame.callees.items():
            visit(callee, each)
    visit("all", root)
    own.pop("all")
    return [(name.removesuffix("_[k]") + (" (kernel)" if name.endswith("_[k]") else ""), cost)
            for name, cost in sorted(own.items(), key=lambda each: -each[1])[:most]]
