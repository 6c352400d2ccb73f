#!/usr/bin/env python3
"""Compares the lines of `strace` and `rperf trace` of the same program, call by call: names, results, and each argument that rperf prints.

usage: compare.py STRACE_LINES RPERF_LINES CALLS_TXT

Lists every difference. The status is 1 if EXPECTED does not explain a difference, an expected difference is gone, a call was not made,
a call of EXCLUDED was made, or nothing was compared.
"""
import re
import sys

# The argument of the getpgid call before the compared calls.
MARK = "2147483646"

# Reasons for differences.
ADDRESS = "nothing was written there, so rperf prints the address"
PERF = "as perf prints it"
UNKNOWN = "the kernel has no such call, so its arguments are unknown"
UNKNOWN_ARGUMENTS = {
    "epoll_ctl_old": (4, 5),
    "epoll_wait_old": (3, 4, 5),
    "lookup_dcookie": (1, 3, 4, 5),
    "security": (3,),
}
# Call and argument: why the two texts differ.
EXPECTED = {
    ("poll", "ufds"): "strace hides the events of negative descriptors",
    ("ppoll", "ufds"): "strace hides the events of negative descriptors",
    ("epoll_ctl", "event"): "the data are one number",
    ("getrandom", "ubuf"): ADDRESS,
    ("futex", "op"): PERF,
    ("mmap", "fd"): PERF,
    ("msync", "start"): PERF,
    ("mlock", "start"): PERF,
    ("munlock", "start"): PERF,
    ("prctl", "arg2"): "rperf does not know the values of this option",
    ("keyctl", "arg4"): "strace knows which arguments the operation has",
    ("keyctl", "arg5"): "strace knows which arguments the operation has",
    ("fsmount", "attr_flags"): PERF,
    ("clone", "clone_flags"): "strace prints the stack first, and the signal by its name; rperf prints them as perf does",
    ("recvmsg", "msg"): "strace prints the room for the address if the call failed",
    ("epoll_pwait", "sigmask"): "strace reads it after the call, if that succeeded",
    ("epoll_pwait2", "sigmask"): "strace reads it after the call, if that succeeded",
    ("epoll_pwait2", "timeout"): "strace reads it after the call, if that succeeded",
    ("modify_ldt", "result"): "the kernel returns the error as an unsigned number of 32 bits",
    ("sched_setscheduler", "policy"): "strace does not know the flag",
    ("rt_sigsuspend", "result"): PERF,
    ("pause", "result"): PERF,
    ("rt_sigreturn", "result"): "it returns to the interrupted code, whose registers it restores",
    ("futex_waitv", "waiters"): "the names are those of newer headers (FUTEX2_SIZE_U32)",
    ("kexec_load", "flags"): "strace does not know the flag",
    ("kexec_file_load", "flags"): "strace does not know the flag",
    ("kexec_file_load", "cmdline_ptr"): "strace prints the NUL",
    **{(call, f"arg{index}"): UNKNOWN for call, indices in UNKNOWN_ARGUMENTS.items() for index in indices},
}

# Calls that the program does not make, and why.
EXCLUDED = {
    "uretprobe": "the kernel ends a process that calls it outside of its own trampoline",
}


def arguments(text):
    """Splits at commas outside of quotes and brackets. Buffers of rperf have no quotes, so the argument after them is found by its name."""
    text = re.sub(r'(\bbuf: )(.*)(, count: \d+)', lambda match: match[1] + '"' + match[2].replace('"', r'\34') + '"' + match[3], text)
    parts, depth, quoted, word, escaped = [], 0, False, "", False
    for letter in text:
        if quoted:
            word += letter
            quoted = not (letter == '"' and not escaped)
            escaped = letter == "\\" and not escaped
            continue
        if letter == '"':
            quoted = True
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        if letter == "," and depth == 0:
            parts.append(word.strip())
            word = ""
        else:
            word += letter
    if word.strip():
        parts.append(word.strip())
    return parts


def lines(path, pattern):
    """Returns (name, arguments, result) of the lines after the mark."""
    calls, is_after = [], False
    for line in open(path, errors="replace"):
        match = re.match(pattern, line.rstrip("\n"))
        if not match:
            continue
        name, given, result = match.groups()
        if name == "getpgid" and MARK in given:
            is_after = True
        elif is_after:
            calls.append((name, given, result.strip()))
    return calls


def table(path):
    """Returns the argument names of each call of x86-64, and the names by number."""
    names, numbers = {}, {}
    for line in open(path):
        fields = line.rstrip("\n").split("|")
        if line.startswith("#") or fields[1] == "-":
            continue
        names[fields[0]] = [one.split(":")[0] for one in fields[5].split(";")] if fields[5] != "?" else []
        # The upper half of a position, which 64-bit programs do not have. strace does not print it.
        names[fields[0]] = [one for one in names[fields[0]] if one != "pos_h"]
        numbers[int(fields[1])] = fields[0]
    return names, numbers


def number(text):
    """Returns a number in C's notation, else None."""
    if re.fullmatch(r"0[0-7]+", text):
        return int(text, 8)
    text = re.sub("^0x0+(?=.)", "0x", text)
    if re.fullmatch(r"-?(0x[0-9a-fA-F]+|0|[1-9]\d*)", text):
        return int(text, 0)
    return None


def unescaped(text, decimal=False):
    """Returns the bytes of a C string, or of a buffer of rperf, whose escapes are decimal."""
    plain = {"n": 10, "t": 9, "r": 13, "v": 11, "f": 12, '"': 34, "\\": 92}
    text = text.removesuffix("...")
    quoted = text.startswith('"') and not decimal
    body = text[1:-1] if text.startswith('"') else text
    out, at = [], 0
    while at < len(body):
        if body[at] != "\\":
            out.append(ord(body[at]))
            at += 1
            continue
        digits = re.match(r"\\([0-7]{1,3})" if quoted else r"\\(\d{1,3})", body[at:])
        if digits:
            out.append(int(digits.group(1), 8 if quoted else 10))
            at += len(digits.group(0))
        else:
            out.append(plain[body[at + 1]])
            at += 2
    return out


# Words of rperf, which are those of perf, and the ends of strace's words for the same values.
OTHER_WORDS = {"CWD": "FDCWD", "LOCAL": "UNIX", "RW": "R_OK", "R": "R_OK", "X": "X_OK"}


# Names of flags with the value 0, which rperf does not print.
NO_FLAGS = r"\b(AT_STATX_SYNC_AS_STAT|FAN_CLASS_NOTIF|KEXEC_ARCH_DEFAULT)\|"
BASIC_STATS = "|".join("STATX_" + name for name in "TYPE MODE NLINK UID GID ATIME MTIME CTIME INO SIZE BLOCKS".split())


def words(text):
    """Returns names and numbers without addresses, which differ in each run."""
    text = re.sub(r"\b0x(?!0)[0-9a-fA-F]{9,}\b", "", re.sub(NO_FLAGS, "", text)).replace("STATX_BASIC_STATS", BASIC_STATS)
    values = re.findall(r"(?<![\w.])(?:0x[0-9a-fA-F]+|-?\d+(?:\.\d+){3}|-?\d+(?:\*\d+)?)(?![\w.])|[A-Z][A-Z0-9_]+|\b[A-Z]\b", text)
    for index, word in enumerate(values):
        if "*" in word:
            first, second = word.split("*")
            values[index] = str(int(first) * int(second))
    return values


def same_word(mine, other):
    """Whether a word of rperf equals a word of strace, or its end after a prefix."""
    first, second = number(mine), number(other)
    if first is not None or second is not None:
        return first == second
    return any(other == word or other.endswith("_" + word) or other in ("SIG" + word, "W" + word) for word in (mine, OTHER_WORDS.get(mine, mine)))


MODES = {"RWXUGO": 0o777, "RUGO": 0o444, "WUGO": 0o222, "XUGO": 0o111, "RUSR": 0o400, "WUSR": 0o200, "XUSR": 0o100, "RGRP": 0o40,
         "WGRP": 0o20, "XGRP": 0o10, "ROTH": 4, "WOTH": 2, "XOTH": 1, "SVTX": 0o1000, "SUID": 0o4000, "SGID": 0o2000}


def mode(text):
    """Returns the permission bits of a mode, and the name of its type."""
    bits, kind = 0, ""
    for word in text.split("|"):
        word = word.strip().removeprefix("S_").removeprefix("I")
        if word in MODES:
            bits |= MODES[word]
        elif re.fullmatch(r"0[0-7]*", word):
            bits |= int(word, 8)
        else:
            kind = word
    return bits, kind


def texts(text):
    """Returns the quoted texts, except those of inet_addr, and the paths of sockets, which have no quotes in rperf."""
    text = re.sub(r'inet_addr\("[^"]*"\)', "", text)
    text = re.sub(r"\bpath: ([^ }]+)", r'"\1"', text)
    return re.findall(r'"(?:[^"\\]|\\.)*"', text)


# Arguments that are permissions, perhaps with the type of a file.
MODE_CALLS = re.compile(r"(chmod|fchmod\w*|creat|open\w*|mkdir\w*|mknod\w*|mq_open)\.mode|umask\.mask")


def same(name, ours, theirs, call=""):
    """Whether an argument of a call has the same value in both texts."""
    ours = re.sub(r"<[^<>]*>$", "", ours)
    theirs = re.sub(r" ?/\*.*?\*/", "", theirs)
    if MODE_CALLS.fullmatch(f"{call}.{name}") and not ours.isdigit():
        return mode(ours) == mode(theirs)
    if ours == theirs or ours.removesuffix(" (unreadable)") == theirs:
        return True
    first, second = number(ours), number(theirs)
    if first is not None and second is not None:
        return (first - second) % 2**32 == 0
    if first == 0 and theirs == "NULL":
        return True
    if name == "mode" and theirs.endswith("_OK"):
        return ours == "".join(word[0] for word in theirs.split("|"))
    if theirs.startswith('"'):
        try:
            return unescaped(ours, name in ("buf", "buff", "ubuf", "value") and "/" not in ours) == unescaped(theirs)
        except (KeyError, IndexError):
            return False
    if theirs.startswith("[") and '"' in theirs and ours.startswith("["):
        return texts(ours) == texts(theirs)
    if texts(theirs) and ours.startswith("{") and texts(ours) != texts(theirs):
        return False
    if re.search("stx?_mode", theirs):
        mine, other = (dict(re.findall(r"stx?_(mode|size)[:=] ?([^,}]+)", text)) for text in (ours, theirs))
        is_device = "st_rdev" in ours or "stx_rdev" in ours
        return mode(mine["mode"].strip()) == mode(other["mode"].strip()) and (is_device or mine["size"].strip() == other["size"].strip())
    mine, other = words(ours), words(theirs)
    is_found = all(any(same_word(word, one) for one in other) for word in mine)
    # strace shows more fields of structures.
    return is_found and (len(mine) == len(other) or ours.startswith(("{", "[")))


def result(text):
    """Returns the number and the error of a result."""
    match = re.match(r"(-?0x[0-9a-f]+|-?\d+|\?)(?: (E[A-Z0-9]+))?", text)
    return match.groups() if match else (text, None)


# Calls whose results are ids of tasks, which differ in each run.
TASK_RESULTS = {"clone", "clone3", "fork", "vfork", "getpid", "getppid", "getpgrp", "gettid", "set_tid_address", "setsid", "wait4"}


class Tasks:
    """Ids of tasks by the order in which a tool prints them."""

    def __init__(self):
        self.ids = {}

    def order(self, text):
        """Returns the position of an id in the order of first appearance; a text that is no id is returned unchanged."""
        number = re.match(r"\d+", text)
        return self.ids.setdefault(number[0], len(self.ids)) if number else text

    def known(self, text):
        """Returns the position of an id that order() has seen, else None."""
        number = re.match(r"\d+", text)
        return self.ids.get(number[0]) if number else None


class Comparison:
    """Collects differences as (call, argument, text of rperf, text of strace)."""

    def __init__(self, names):
        self.names = names
        self.compared, self.problems = 0, []
        self.our_tasks, self.their_tasks = Tasks(), Tasks()

    def result(self, name, ours, theirs):
        flags = re.search(r"\(flags (.*)\)", theirs)
        if flags:
            is_same = same("result", ours, flags[1])
        elif ours == theirs:
            is_same = True
        elif name in TASK_RESULTS and result(ours)[1] is None:
            is_same = self.our_tasks.order(ours) == self.their_tasks.order(theirs)
        elif result(ours)[1] != result(theirs)[1]:
            is_same = False
        elif ours.startswith("0x") and theirs.startswith("0x"):
            is_same = True
        else:
            is_same = same("result", *(re.sub(r"[ (].*", "", text) for text in (ours, theirs)))
        if not is_same:
            self.problems.append((name, "result", ours, theirs))

    def argument(self, name, key, value, values, is_raw):
        if key not in self.names.get(name, []):
            unnamed = re.fullmatch(r"arg(\d)", key)
            if not unnamed or self.names.get(name):
                self.problems.append((name, key, value, "(no such argument)"))
                return
            index = int(unnamed[1])
        else:
            index = self.names[name].index(key)
        if index >= len(values):
            # strace omits arguments without a meaning; so must rperf.
            self.problems.append((name, key, value, "(not printed)"))
            return
        other = values[index]
        if re.fullmatch(r"0x[0-9a-f]{9,}", value) and re.match(r"0x[0-9a-f]{9,}", other):
            return
        task = self.our_tasks.known(value)
        if task is not None and task == self.their_tasks.known(other):
            self.compared += 1
            return
        if is_raw:
            if value.startswith(('"', "{")) or re.match(r"0x[0-9a-f]{9,}", other):
                # strace does not know the call and shows addresses.
                return
            value = {"CWD": "-100"}.get(value, value)
            if number(value) is None:
                # A name or a set of names.
                return
        self.compared += 1
        if not same(key, value, other, name):
            self.problems.append((name, key, value, other))

    def hidden(self, name, printed, values):
        """Compares the arguments that rperf does not print: they must be 0."""
        for key, other in zip(self.names[name], values):
            if key and key not in printed and number(other):
                self.problems.append((name, key, "(not printed)", other))


def explain(problems):
    """Prints differences with their reasons. Returns True if a difference has no reason, or an expected difference is gone."""
    failed, seen = False, set()
    for name, key, mine, other in problems:
        reason = EXPECTED.get((name, key))
        seen.add((name, key))
        failed |= reason is None
        print(f"{name} {key}: {mine} | {other} | {reason or 'UNEXPECTED'}")
    for gone in set(EXPECTED) - seen:
        failed = True
        print(f"{gone[0]} {gone[1]}: no difference any more")
    return failed


def main():
    strace_path, rperf_path, calls_path = sys.argv[1:4]
    theirs = lines(strace_path, r"(?:\d+ +)?(\w+)\((.*?)\)\s+= (.*)$")
    ours = lines(rperf_path, r".*?\): \S+/\d+ (\w+)\((.*)\)\s+= (.*)$")
    names, numbers = table(calls_path)
    comparison = Comparison(names)
    if len(ours) != len(theirs):
        comparison.problems.append(("", "", f"{len(ours)} calls", f"{len(theirs)} calls"))
    for (name, given, returned), (other, other_given, other_returned) in zip(ours, theirs):
        unknown = re.fullmatch(r"syscall_(0x[0-9a-f]+)", other)
        other = numbers.get(int(unknown[1], 16), other) if unknown else other
        if name != other:
            comparison.problems.append((name, "", name, other))
            continue
        comparison.result(name, returned, other_returned)
        printed = [argument.partition(": ") for argument in arguments(given)]
        values = arguments(other_given)
        for key, _, value in printed:
            comparison.argument(name, key, value, values, unknown is not None)
        if not unknown:
            comparison.hidden(name, {key for key, _, _ in printed}, values)
    failed = explain(comparison.problems)
    called = {name for name, _, _ in ours}
    for name in sorted(set(names) - called - set(EXCLUDED)):
        failed = True
        print(f"{name}: not called")
    for name in sorted(called & set(EXCLUDED)):
        failed = True
        print(f"{name}: called, although excluded")
    for name, reason in EXCLUDED.items():
        print(f"{name}: excluded: {reason}")
    print(f"{len(called)} of {len(names)} system calls, {len(ours)} times, {comparison.compared} arguments compared, {len(comparison.problems)} differences")
    return 1 if failed or not comparison.compared else 0


if __name__ == "__main__":
    sys.exit(main())
