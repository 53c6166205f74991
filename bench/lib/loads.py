"""Runs bench_load, and says whether its answers were what the scenario is about."""
import json
import os


class Unmeasured(Exception):
    """The load did not get what the scenario is about."""


def load_options(port, load):
    options = ["--port", str(port)]
    for name, value in load.items():
        options += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return options


def run_load(peers, port, load, watch, **more):
    """One run of bench_load; its JSON."""
    watched = [word for peer in watch for word in ("--watch", str(peer.process.pid))]
    command = [os.path.join(peers.tools, "bench_load"), *load_options(port, {**load, **more}), *watched]
    return json.loads(peers.group.output(peers.cores.load, *command, timeout=300))


def check_answers(scenario, said):
    """Refusals where they belong and nowhere else, and hardly an error."""
    answered = sum(said["statuses"].values())
    refused = said["statuses"].get("429", 0)
    good = sum(n for status, n in said["statuses"].items() if status[0] == "2")
    least, most = scenario.refused
    if answered == 0 or not least <= refused / answered <= most or good + refused < answered * 0.999 or said["errors"] > answered * 0.001:
        raise Unmeasured(f"answers were not as they should be: {said['statuses']}, {said['errors']} broken connections")
