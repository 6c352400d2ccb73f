"""Damaged recordings raise ValueError or OSError, and never end the interpreter: python3 damage.py FOLDER COUNT FILE..."""

import os
import random
import sys
import warnings

import perf

folder, count, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
warnings.simplefilter("ignore")
random.seed(7)
outcomes = {}


def use(event):
    repr(event), event.type
    if isinstance(event, perf.sample_event):
        event.fields(), event.callchain, event.brstack, event.symbol, event.addr_symbol, event.values


for number in range(count):
    content = bytearray(open(random.choice(paths), "rb").read())
    for _ in range(random.randint(1, 20)):
        content[random.randrange(len(content))] = random.randrange(256)
    if random.random() < 0.2:
        del content[random.randrange(len(content)) :]
    path = os.path.join(folder, "damaged")
    with open(path, "wb") as file:
        file.write(content)
    try:
        session = perf.session(
            perf.data(path), sample=use, mmap=use, comm=use, task=use, lost=use, throttle=use, read=use, context_switch=use
        )
        for action in (session.process_events, session.table, lambda: session.table(["stack", "weight"])):
            try:
                action()
                outcome = "good"
            except (ValueError, OSError) as error:
                assert str(error), number
                outcome = type(error).__name__
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    except (ValueError, OSError) as error:
        assert str(error), number
        outcomes["refused"] = outcomes.get("refused", 0) + 1
assert outcomes.get("good") and outcomes.get("ValueError") and outcomes.get("refused"), outcomes
print("good", outcomes)
