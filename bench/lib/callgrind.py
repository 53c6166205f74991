"""headgate under callgrind, its counters read while it runs: what happened before the last reading is in none of them."""
import os
import subprocess

from lib import processes

# The C library picks memcpy and friends by the processor: the plain ones count alike everywhere.
TUNABLES = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM"


class Counted:
    def __init__(self, group, cores, headgate, conf, port):
        self.group = group
        self.folder = group.path("callgrind")
        os.mkdir(self.folder)
        # vgdb and valgrind find each other by files: in our folder, which goes away whatever happens.
        self.prefix = os.path.join(self.folder, "vgdb")
        self.process = group.start(cores, "env", TUNABLES, "valgrind", "--tool=callgrind", f"--callgrind-out-file={self.folder}/out",
                                   f"--vgdb-prefix={self.prefix}", headgate, "run", conf)
        processes.wait_for_port(group, self.process, port, seconds=120)

    def read(self):
        """The path of a file with what was counted since the last reading."""
        before = set(os.listdir(self.folder))
        asked = subprocess.run(["vgdb", f"--vgdb-prefix={self.prefix}", f"--pid={self.process.pid}", "--wait=20", "dump"],
                               capture_output=True, text=True, timeout=60)
        new = [name for name in os.listdir(self.folder) if name.startswith("out.") and name not in before]
        if asked.returncode != 0 or len(new) != 1:
            raise RuntimeError(f"valgrind gave no counters: {asked.stderr.strip()[-300:]}")
        return os.path.join(self.folder, new[0])

    def last_words(self):
        return self.group.last_words("env")

    def end(self):
        self.group.end(self.process, patience=30)


def total(path):
    """Instructions of all functions and threads."""
    with open(path) as dump:
        return sum(int(line.split()[1]) for line in dump if line.startswith("totals:"))


def functions(path):
    """({function: its own cost}, {(caller, callee): inclusive cost})."""
    names, own, calls = {}, {}, {}
    function = callee = None

    def named(text):  # (7) name where it is first met, (7) from then on
        number, _, name = text.partition(" ")
        return names.setdefault(number, name) if name else names[number]
    with open(path) as lines:
        for line in lines:
            if line.startswith("fn="):
                function = named(line[3:].rstrip("\n"))
            elif line.startswith("cfn="):
                callee = named(line[4:].rstrip("\n"))
            elif line[0].isdigit() or line[0] in "+-*":
                words = line.split()
                cost = int(words[1]) if len(words) > 1 else 0
                if callee:
                    calls[function, callee] = calls.get((function, callee), 0) + cost
                    callee = None
                else:
                    own[function] = own.get(function, 0) + cost
    return own, calls
