"""A flame graph of the request path: by perf where it works, with the kernel's part where it may be seen; by callgrind,
user space only, elsewhere. Beside the SVG it prints the functions that cost most."""
import os
import re
import shutil
import subprocess
import time

from lib import callgrind, flame, measure, peers, processes
from lib.scenarios import BY_NAME

SECONDS = 10


def run(group, chosen, path, progress):
    scenario = BY_NAME[(chosen.scenario or ["limited"])[0]]
    if scenario.kind != "load":
        raise RuntimeError(f"there is no request path to see in {scenario.name}")
    parts = peers.Peers(group, processes.Cores(), chosen.headgate, chosen.tools)
    parts.start_redis(scenario.setting.store)
    event = perf_event(group)
    try:
        root, unit = by_perf(group, parts, scenario, event, progress) if event else by_callgrind(group, parts, scenario, progress)
    except peers.Skipped as why:
        raise RuntimeError(why) from None
    progress.clear()
    if root.cost == 0:
        raise RuntimeError("no samples")
    how = f"perf, {event}" if event else "callgrind, user space only"
    with open(path, "w") as out:
        out.write(flame.draw(root, f"headgate, {scenario.name}: {scenario.title} ({how})", unit))
    for name, cost in heaviest(root):
        print(f"{cost / root.cost:7.1%}  {name}")
    print(f"flame graph: {path} ({how})")


def perf_event(group):
    """What perf can count here: cycles on a machine of one's own, the clock on most virtual ones, or nothing."""
    if not shutil.which("perf"):
        return None
    for event in ("cycles", "cpu-clock", "cycles:u", "cpu-clock:u"):
        data = group.path("try.data")
        tried = subprocess.run(["perf", "record", "-q", "-N", "-e", event, "-g", "-o", data, "--", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"],
                               capture_output=True)
        if tried.returncode == 0:
            seen = subprocess.run(["perf", "script", "-i", data], capture_output=True)
            if seen.returncode == 0 and seen.stdout.strip():  # it may have taken another event than it was asked for
                return subprocess.run(["perf", "evlist", "-i", data], capture_output=True, text=True).stdout.split()[0]
    return None


def by_perf(group, parts, scenario, event, progress):
    gateway = parts.start("headgate", scenario.setting)
    progress.tell(f"profile: {scenario.name} under perf, {SECONDS} s")
    data = group.path("perf.data")
    measure.run_load(parts, gateway.port, scenario.load, [], seconds=0.5)
    # By the unwinding tables: frame pointers would be quicker to follow, but the C library's system calls have none.
    recording = group.start(parts.cores.load, "perf", "record", "-q", "-N", "-e", event,
                            "-F", "499", "--call-graph", "dwarf,8192", "-p", str(gateway.process.pid), "-o", data)
    time.sleep(0.5)
    measure.run_load(parts, gateway.port, scenario.load, [], seconds=SECONDS)
    group.end(recording)  # TERM makes it write what it has
    progress.tell("profile: reading the samples")
    script = group.output(None, "perf", "script", "-i", data, "-F", "comm,ip,sym,dso", "--no-inline")
    return fold_perf(script), "samples"


def fold_perf(script):
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
    """Names without their arguments and template parameters, which fill the picture and say little."""
    if name == "[unknown]":
        return f"({where.strip('[]') or 'unknown'})"
    name = re.sub(r"(\+0x[0-9a-f]+|'\d+)$", "", name)  # an offset; callgrind's mark of a recursion
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


def by_callgrind(group, parts, scenario, progress):
    """Instructions, for want of time: valgrind sees what perf cannot, but not the kernel."""
    if not shutil.which("valgrind"):
        raise RuntimeError("neither perf nor valgrind works here: script/setup bench installs both")
    port = processes.free_port()
    conf = group.write("profiled.yaml", parts.headgate_yaml(scenario.setting, port))
    gateway = callgrind.Counted(group, parts.cores.proxy, parts.headgate, conf, port)
    progress.tell(f"profile: {scenario.name} under callgrind, {SECONDS} s")
    load = {**scenario.load, "connections": 16}
    measure.run_load(parts, port, load, [], seconds=1)
    gateway.read()  # starting and warming up are not the request path
    measure.run_load(parts, port, load, [], seconds=SECONDS)
    counted = gateway.read()
    gateway.end()
    return fold_callgrind(*callgrind.functions(counted)), "instructions"


def fold_callgrind(own, calls):
    """callgrind knows edges, not stacks: a function's callees are shared out among its callers by what each caused."""
    callees, called = {}, {}
    for (caller, callee), cost in calls.items():
        if caller != callee:
            callees.setdefault(caller, []).append((callee, cost))
            called[callee] = called.get(callee, 0) + cost
    inclusive = {name: own.get(name, 0) + sum(cost for _, cost in callees.get(name, [])) for name in set(own) | set(callees)}
    root = flame.Frame()
    least = sum(own.values()) / 2000

    def walk(name, share, stack):
        stack = (*stack, readable(name, ""))
        here = own.get(name, 0) * share
        for callee, cost in callees.get(name, []):
            part = cost * share
            if part < least or len(stack) > 60 or readable(callee, "") in stack or not inclusive.get(callee):
                here += part  # too small to see, or a recursion: counted with its caller
            else:
                walk(callee, part / inclusive[callee], stack)
        root.add(stack, round(here))
    for name, cost in inclusive.items():
        alone = cost - called.get(name, 0)  # its caller has not returned: the outermost that we know
        if alone > least:
            walk(name, alone / cost, ())
    return root


def heaviest(root, most=15):
    """Functions by what they cost themselves."""
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
