"""Describes the machine and the versions that the figures are from."""
import os
import platform
import re
import subprocess
import time


def first_line(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
        return (done.stdout + done.stderr).strip().splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return ""


def version(*command):
    found = re.search(r"\d+(\.\d+)+\S*", first_line(*command))
    return found.group(0) if found else "absent"


def read(path, pattern):
    try:
        with open(path) as text:
            found = re.search(pattern, text.read(), re.MULTILINE)
            return found.group(1) if found else ""
    except OSError:
        return ""


def describe(cores, binaries):
    memory = int(read("/proc/meminfo", r"^MemTotal:\s+(\d+)") or 0)
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "cpu": read("/proc/cpuinfo", r"^model name\s*: (.*)") or platform.processor(),
        "cores": os.cpu_count(),
        "virtual": bool(re.search(r"\bhypervisor\b", read("/proc/cpuinfo", r"^flags\s*: (.*)"))),
        "memory_gib": round(memory / 2**20, 1),
        "kernel": platform.release(),
        "system": read("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'),
        "compiler": first_line("c++", "--version"),
        "load_before": os.getloadavg()[0],
        "pinning": cores.described(),
        "versions": {
            **{label: version(binary, "version") for label, binary in binaries.items()},
            "nginx": version("nginx", "-v"),
            "HAProxy": version("haproxy", "-v"),
            "Caddy": version("caddy", "version"),
            "Redis": version("redis-server", "--version"),
        },
    }


def in_words(machine):
    """The description as lines of (what, text)."""
    kind = "virtual machine, " if machine["virtual"] else ""
    return [
        ("machine", f"{kind}{machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']} GiB"),
        ("system", f"{machine['system']}, Linux {machine['kernel']}"),
        ("built with", machine["compiler"]),
        ("beside", ", ".join(f"{name} {number}" for name, number in machine["versions"].items())),
        ("pinned", machine["pinning"]),
        ("measured", f"{machine['date']}{', with --quick' if machine.get('quick') else ''}; "
                     f"{machine['load_before']:.1f} other processes were running before" + (": look at ratios only" if machine["load_before"] > 1 else "")),
    ]
