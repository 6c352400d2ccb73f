# Util: times, statistics and names of system calls and errors.

import errno
import os

FUTEX_WAIT = 0
FUTEX_WAKE = 1
FUTEX_PRIVATE_FLAG = 128
FUTEX_CLOCK_REALTIME = 256
FUTEX_CMD_MASK = ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)
NSECS_PER_SEC = 1000000000


def avg(total, n):
    return total / n


def nsecs(secs, nsecs):
    return secs * NSECS_PER_SEC + nsecs


def nsecs_secs(nsecs):
    return nsecs / NSECS_PER_SEC


def nsecs_nsecs(nsecs):
    return nsecs % NSECS_PER_SEC


def nsecs_str(nsecs):
    # A tuple of one text, as scripts know it.
    return ("%5u.%09u" % divmod(nsecs, NSECS_PER_SEC),)


def add_stats(dict, key, value):
    low, high, mean, count = dict.get(key, (value, value, value, 0))
    mean = (mean + value) / 2 if count else value
    dict[key] = (min(low, value), max(high, value), mean, count + 1)


def clear_term():
    print("\x1b[H\x1b[2J")


def syscall_name(id):
    return _setup["syscalls"].get(id, str(id))


def strerror(nr):
    return errno.errorcode.get(abs(nr), "Unknown %d errno" % nr)
