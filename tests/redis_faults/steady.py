"""A steady load of many keys, each with the expectation of its next verdict.

A key begins with a charge of its own size, so that no two keys have ever used the same: an answer meant for another key shows. Each
key has one request under way at a time; of the next verdict it is known to the token what it must say, except for requests that met
an outage meanwhile, of which each may have been charged or not.
"""
import asyncio
import re
import time

from load import Asker, request

LIMIT = 10_000_000
GAP = 10_000  # between two keys: more than one row can use
USED = re.compile(rb"\r\nratelimit: \"steady\";r=(\d+)", re.IGNORECASE)


class Key:
    def __init__(self, number):
        self.name = f"key{number}"
        self.offset = (number + 1) * GAP
        self.used = 0  # according to the last verdict
        self.unsure = 0  # may have been charged since
        self.cost = self.offset  # of the next request

    def meet_outage(self):
        """After a request that may have been charged: a small cost shows it, before a large cost is charged again."""
        self.unsure += self.cost
        self.cost = 1

    def meet(self, used, row):
        """Returns None, or the error of a verdict with this used amount, which includes this request."""
        cost, before, unsure = self.cost, self.used, self.unsure
        self.used, self.unsure = used, 0
        self.cost = 1 if used >= self.offset else self.offset
        if before + cost <= used <= before + cost + unsure:
            return None
        if row.may_forget and cost <= used <= cost + unsure:
            row.forgotten += 1
            return None
        if row.may_lose and self.offset <= used < before + cost:
            row.lost += before + cost - used
            return None
        return f"{self.name}: {used} used, {before} + {cost} (+ {unsure} at most) expected"


class Steady:
    """`connections` clients of some keys each, over all gateways in turn; and a few that use a limit in memory, to measure how slow the
    machine itself is."""

    def __init__(self, loop, ports, connections=32, keys=6, pace=0.04):
        self.loop, self.ports, self.pace = loop, ports, pace
        self.may_forget = self.may_lose = False
        self.answers = self.degraded = self.forgotten = self.lost = self.unanswered = 0
        self.longest = self.longest_plain = 0.0
        self.last_degraded = 0.0
        self.wrong = []
        self.is_over = False
        self.keys = [Key(number) for number in range(connections * keys)]
        self.tasks = [loop.begin(self._ask(self.keys[at::connections], at / connections)) for at in range(connections)]
        self.tasks += [loop.begin(self._ask_plain(number)) for number in range(4)]

    async def _ask(self, keys, phase):
        askers = [Asker(port) for port in self.ports]
        await asyncio.sleep(phase * self.pace)
        turn = 0
        while not self.is_over:
            key = keys[turn % len(keys)]
            asker = askers[turn // len(keys) % len(askers)]
            turn += 1
            answer = await asker.ask(request("/steady", X_API_Key=key.name, X_Cost=key.cost))
            self._receive(key, answer)
            await asyncio.sleep(self.pace)
        for each in askers:
            each.close()

    def _receive(self, key, answer):
        if answer is None:
            self.unanswered += 1
            return key.meet_outage()
        self.answers += 1
        self.longest = max(self.longest, answer.seconds)
        if answer.status != 200:
            return self.wrong.append(f"{key.name}: {answer.head[:200]!r}")
        if found := USED.search(answer.head):
            if complaint := key.meet(LIMIT - int(found.group(1)), self):
                self.wrong.append(complaint)
        else:
            self.degraded += 1
            self.last_degraded = time.monotonic()
            key.meet_outage()

    async def _ask_plain(self, number):
        asker = Asker(self.ports[number % len(self.ports)])
        while not self.is_over:
            answer = await asker.ask(request("/plain", X_API_Key=f"plain{number}"))
            if answer is None or answer.status != 200:
                self.wrong.append(f"plain: {answer and answer.head[:200]!r}")
            else:
                self.longest_plain = max(self.longest_plain, answer.seconds)
            await asyncio.sleep(self.pace / 4)
        asker.close()

    def every_key_is_known(self):
        return all(key.used >= key.offset for key in self.keys)

    def stop(self):
        self.is_over = True
        for each in self.tasks:
            each.result(60)
