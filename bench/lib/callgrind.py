"""Runs headgate under callgrind and reads its counters while it runs. Each reading counts from the one before."""
import os
import subprocess

from lib import processes

# The C library chooses memcpy and others by the processor: the plain versions give the same counts everywhere.
TUNABLES = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM"


class Counted:
    def __init__(self, group, cores, headgate, conf, port):
        self.group = group
        self.folder = group.path("callgrind")
        os.mkdir(self.folder)
        # vgdb and valgrind find each other by files: they are in the group's folder, which is always removed.
        self.prefix = os.path.join(self.folder, "vgdb")
        self.process = group.start(cores, "env", TUNABLES, "valgrind", "--tool=callgrind", f"--callgrind-out-file={self.folder}/out",
                                   f"--vgdb-prefix={self.prefix}", headgate, "run", conf)
        processes.wait_for_port(group, self.process, port, seconds=120)

    def read(self):
        """Returns the path of a file with the counts since the last reading."""
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
