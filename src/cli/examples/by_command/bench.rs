//! The example lines of `bench` and its collections.

use super::{CommandLine, example};

/// `bench` and its collections, with their examples. In these lines, `-r` is the number of runs; after the names
/// `epoll wait`, `epoll ctl` and `futex hash`, it is the run time in seconds.
pub(super) const BENCH: &[(&str, &[CommandLine])] = &[
    (
        "bench",
        &[
            example("bench", "list the collections of benchmarks"),
            example("bench sched", "list the benchmarks of a collection"),
            example(
                "bench syscall basic -l 10000",
                "measure the cost of a system call",
            ),
            example(
                "bench -r 5 syscall fork -l 100",
                "mean and deviation of five runs",
            ),
            example(
                "bench --precision 10 sched pipe -l 10000",
                "repeat until the mean is known to 10 %",
            ),
            example(
                "bench syscall getpgid -l 10000 -r 10 --json",
                "save the results for --baseline",
            ),
        ],
    ),
    (
        "bench breakpoint",
        &[
            example(
                "bench breakpoint thread -b 2 -t 20",
                "threads that inherit two breakpoints",
            ),
            example(
                "bench breakpoint enable -a 1",
                "set a breakpoint while another thread runs",
            ),
        ],
    ),
    (
        "bench epoll",
        &[
            example(
                "bench epoll wait -t 2 -r 1 -f 8",
                "two threads that wait for events, one second",
            ),
            example(
                "bench epoll ctl -t 2 -r 1 -N 1",
                "change a nested epoll set",
            ),
        ],
    ),
    (
        "bench internals",
        &[
            example(
                "bench -r 3 internals kallsyms-parse",
                "read the kernel's symbols",
            ),
            example(
                "bench internals synthesize -i 10",
                "synthesize the records of this process",
            ),
            example(
                "bench internals evlist-open-close -i 5 -n 4",
                "open and close four events",
            ),
        ],
    ),
    (
        "bench futex",
        &[
            example("bench futex hash -t 2 -r 1", "two threads, one second"),
            example(
                "bench -r 3 futex wake -t 4 -w 2",
                "wake four threads, two at a time",
            ),
            example(
                "bench -r 3 futex requeue -t 4 -p",
                "requeue threads to a PI futex",
            ),
        ],
    ),
    (
        "bench mem",
        &[
            example("bench mem memcpy -s 64KB -l 100", "copy 64 KB, 100 times"),
            example(
                "bench -r 5 mem memset -f default",
                "one function, five runs",
            ),
            example("bench mem mmap -s 1MB -t 2", "map memory in two threads"),
            example("bench mem find_bit -i 2 -j 100", "search bitmaps"),
        ],
    ),
    (
        "bench numa",
        &[
            example(
                "bench numa mem -p 1 -t 2 -P 16 -l 20",
                "two threads pass over 16 MB that they share",
            ),
            example(
                "bench numa mem -p 2 -t 1 -T 16 -C 0,1 -s 1",
                "two processes on two CPUs, one second",
            ),
            example(
                "bench numa mem -p 1 -t 1 -P 16 -M 0 -R -q -l 20",
                "read memory of node 0",
            ),
        ],
    ),
    (
        "bench sched",
        &[
            example(
                "bench sched messaging -g 2 -l 10",
                "80 processes that exchange messages",
            ),
            example("bench sched messaging -t -p -l 10", "threads and pipes"),
            example(
                "bench sched pipe -l 10000",
                "two processes, 10000 round trips",
            ),
            example(
                "bench sched seccomp-notify -l 1000",
                "system calls answered by a process",
            ),
        ],
    ),
    (
        "bench syscall",
        &[
            example("bench syscall basic -l 100000", "the cheapest system call"),
            example("bench syscall fork -l 100", "processes that exit at once"),
            example(
                "bench -r 5 syscall execve -l 100",
                "start programs, five runs",
            ),
        ],
    ),
    (
        "bench uprobe",
        &[
            example("bench uprobe baseline -l 100", "sleeps without a probe"),
            example("bench uprobe empty -l 100", "sleeps with a probe on usleep"),
            example(
                "bench -r 3 uprobe empty_ret -l 100",
                "sleeps with a probe at the return of usleep, three runs",
            ),
        ],
    ),
];
