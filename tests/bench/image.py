"""Compares the results of perf and rperf for a kernel image: definitions, variables and source lines.

usage: image.py RPERF VMLINUX [SOURCES]   (VMLINUX of linux-image-*-dbg, SOURCES an unpacked linux-source-*)

Prints each difference and each definition that perf refuses. Fails if a difference is none of those that
docs/compatibility.md explains: further locations in a unit, types that perf calls unknown, and lines that perf leaves
without a number though it probes them."""

import subprocess
import sys

DEFINITIONS = """
tcp_sendmsg; tcp_sendmsg size sk->__sk_common.skc_num; tcp_sendmsg%return $retval; tcp_recvmsg len flags; tcp_sendmsg:5
tcp_v4_connect uaddr addr_len; udp_sendmsg len; ip_rcv skb dev; inet_bind addr_len; netif_receive_skb skb->len
do_sys_openat2; do_sys_openat2 dfd filename:string how->flags; do_sys_openat2 $params; do_filp_open dfd; path_openat flags
vfs_read; vfs_read count pos; vfs_read $vars; vfs_read:12 count ret; vfs_write file->f_flags count; ksys_read fd count
ksys_write fd; vfs_open file->f_mode; vfs_fsync_range start end; do_truncate length; vfs_unlink dentry
do_exit code; do_exit:17; kernel_clone args->flags; kernel_clone:62; wake_up_process p->pid; wake_up_new_task p->comm:string
sched_fork p->prio; __schedule sched_mode; set_user_nice p->pid nice; do_wait wo->wo_flags; do_group_exit exit_code
handle_mm_fault address flags; do_mmap addr len prot; __vm_munmap start len; kfree; kfree object; __kmalloc size flags
vmalloc size; filemap_fault vmf->flags; submit_bio bio; submit_bio:6; blk_finish_plug plug; bio_alloc_bioset nr_vecs
fs/read_write.c:467; do_execveat_common flags; begin_new_exec bprm->filename:string; load_elf_binary bprm->interp:string
kill_pid sig priv; send_signal_locked sig; do_nanosleep mode; hrtimer_nanosleep rqtp; ktime_get; do_futex op val
security_file_open file; audit_log_start type; tcp_sen*; vfs_f*
"""
FUNCTIONS = """tcp_sendmsg do_sys_openat2 vfs_read vfs_write ksys_read do_filp_open wake_up_process kernel_clone
handle_mm_fault netif_rx do_exit submit_bio kfree filemap_fault udp_sendmsg"""


def run_probe(tool, words):
    done = subprocess.run([tool, "probe", *words], capture_output=True, text=True, errors="replace")
    return done.returncode, done.stdout.splitlines(), done.stderr.strip()


def is_more(theirs, ours):
    """Whether theirs is a subsequence of ours."""
    rest = iter(ours)
    return all(line in rest for line in theirs)


def without_types(lines):
    return [line.split("\t")[-1] if "(unknown_type)" in line else line for line in lines]


def same_variables(theirs, ours):
    unknown = {line.split("\t")[-1] for line in theirs if "(unknown_type)" in line}
    bare = [line.split("\t")[-1] if line.split("\t")[-1] in unknown else line for line in ours]
    return is_more(without_types(theirs), bare)


def numbers_only(theirs, ours):
    """Whether ours begins with the lines of theirs: with the same text, and with all line numbers of theirs."""
    def split(line):
        return line[:7].strip(), line[7:].strip()
    pairs = list(zip(theirs[1:], ours[1:]))
    return theirs[:1] == ours[:1] and len(ours) >= len(theirs) and all(
        split(a)[1] == split(b)[1] and split(a)[0] in ("", split(b)[0]) for a, b in pairs
    )


def compare(rperf, words, is_alike):
    theirs, ours = run_probe("perf", words), run_probe(rperf, words)
    name = " ".join(words[2:])
    if theirs[0] != 0:
        print(f"perf refuses:  {name}: {theirs[2].splitlines()[0] if theirs[2] else theirs[0]}")
        print(f"   rperf:      {'; '.join(ours[1]) or ours[2]}")
        return True
    if theirs[:2] == ours[:2]:
        return True
    is_known = ours[0] == 0 and is_alike(theirs[1], ours[1])
    print(f"{'more' if is_known else 'DIFFERENT'}: {name}")
    for line in theirs[1]:
        if line not in ours[1]:
            print(f"   - {line}")
    for line in ours[1] if ours[1] else [ours[2]]:
        if line not in theirs[1]:
            print(f"   + {line}")
    return is_known


def main():
    rperf, image, *sources = sys.argv[1:]
    definitions = [words.strip() for words in DEFINITIONS.replace("\n", ";").split(";") if words.strip()]
    results = [compare(rperf, ["-k", image, "-D", words], is_more) for words in definitions]
    for function in FUNCTIONS.split():
        results.append(compare(rperf, ["-k", image, "-V", function], same_variables))
        if sources:
            words = ["-k", image, "-s", sources[0], "-L", function]
            results.append(compare(rperf, words, numbers_only))
    print(f"{len(results)} compared, {results.count(False)} different without a reason")
    sys.exit(results.count(False) > 0)


main()
