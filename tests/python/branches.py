"""Prints the branches of a hardware trace, from and to, and checks that events and table have the same."""

import sys

import perf

data = perf.data(sys.argv[1], force=True)
branches = []
session = perf.session(data, sample=lambda event: branches.append(event), itrace="b")
session.process_events()
assert {event.evsel.name for event in branches} == {session.evsels[-1].name} and len(session.evsels) > len(perf.session(data).evsels)
table = session.table(["ip", "addr"])
assert list(zip(table["ip"], table["addr"])) == [(event.sample_ip, event.sample_addr) for event in branches]
for event in branches:
    print("%x %x" % (event.sample_ip, event.sample_addr))
for refused, text in (("bi", "unknown letter 'i'"), ("x", "unknown letter 'x'")):
    try:
        perf.session(data, itrace=refused)
        assert False
    except ValueError as error:
        assert text in str(error), error
