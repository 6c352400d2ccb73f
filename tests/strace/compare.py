#!/usr/bin/env python3
"""Compares the lines of `strace` and `rperf trace` of the same program, call by call: names, results, and each argument that rperf prints.

usage: compare.py STRACE_LINES RPERF_LINES CALLS_TXT

Lists every difference; the status is 1 if there is one that EXPECTED does not explain, or if an expected one is gone.
"""
import re
import sys

MARK = "2147483646"

# Call and argument, or only the call: why the two texts differ.
ADDRESS = "nothing was written there, so rperf prints the address"
PERF = "as perf prints it"
EXPECTED = {
    ("poll", "ufds"): "strace hides the events of negative descriptors",
    ("ppoll", "ufds"): "strace hides the events of negative descriptors",
    ("epoll_ctl", "event"): "the data are one number",
    ("epoll_wait", "events"): ADDRESS,
    ("mincore", "vec"): ADDRESS,
    ("getrandom", "ubuf"): ADDRESS,
    ("futex", "op"): PERF,
    ("msync", "start"): PERF,
    ("mlock", "start"): PERF,
    ("munlock", "start"): PERF,
    ("prctl", "arg2"): "rperf does not know the values of this option",
    ("keyctl", "arg4"): "strace knows which arguments the operation has",
    ("keyctl", "arg5"): "strace knows which arguments the operation has",
}


def arguments(text):
    """Splits at commas outside of quotes and brackets. Buffers of rperf have no quotes, so what follows them is found by its name."""
    text = re.sub(r'(\bbuf: )(.*)(, count: \d+)', lambda found: found[1] + '"' + found[2].replace('"', r'\34') + '"' + found[3], text)
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
    """Returns (name, arguments, result) of the lines between the marks."""
    found, inside = [], False
    for line in open(path, errors="replace"):
        match = re.match(pattern, line.rstrip("\n"))
        if not match:
            continue
        name, given, result = match.groups()
        if name == "getpgid" and MARK in given:
            inside = not inside
        elif inside:
            found.append((name, given, result.strip()))
    return found


def table(path):
    """Returns the argument names of each call."""
    names = {}
    for line in open(path):
        if line.startswith("#"):
            continue
        fields = line.rstrip("\n").split("|")
        names[fields[0]] = [one.split(":")[0] for one in fields[5].split(";")] if fields[5] != "?" else []
    return names


def number(text):
    """Returns a number in C's notation, else None."""
    if re.fullmatch(r"0[0-7]+", text):
        return int(text, 8)
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


# Words of rperf, which are perf's, and the end of strace's.
OTHER_WORDS = {"CWD": "FDCWD", "LOCAL": "UNIX", "RW": "R_OK", "R": "R_OK", "X": "X_OK"}


def words(text):
    """Returns names and numbers."""
    found = re.findall(r"(?<![\w.])(?:0x[0-9a-fA-F]+|-?\d+(?:\.\d+){3}|-?\d+(?:\*\d+)?)(?![\w.])|[A-Z][A-Z0-9_]+|\b[A-Z]\b", text)
    for index, word in enumerate(found):
        if "*" in word:
            first, second = word.split("*")
            found[index] = str(int(first) * int(second))
    return found


def same_word(mine, other):
    """Whether a word of rperf is one of strace without its prefix."""
    first, second = number(mine), number(other)
    if first is not None or second is not None:
        return first == second
    return any(other == word or other.endswith("_" + word) or other in ("SIG" + word, "W" + word) for word in (mine, OTHER_WORDS.get(mine, mine)))


MODES = {"RWXUGO": 0o777, "RUGO": 0o444, "WUGO": 0o222, "XUGO": 0o111, "RUSR": 0o400, "WUSR": 0o200, "XUSR": 0o100, "RGRP": 0o40,
         "WGRP": 0o20, "XGRP": 0o10, "ROTH": 4, "WOTH": 2, "XOTH": 1, "SVTX": 0o1000, "SUID": 0o4000, "SGID": 0o2000}


def mode(text):
    """Returns the permissions of a mode in words, and its type."""
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


def same(name, ours, theirs):
    """Whether an argument has the same value."""
    ours = re.sub(r"<[^<>]*>$", "", ours)
    theirs = re.sub(r" ?/\*.*?\*/", "", theirs)
    if name in ("mode", "mask") and not ours.isdigit() and not theirs.endswith("_OK"):
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
        return re.findall(r'"(?:[^"\\]|\\.)*"', ours) == re.findall(r'"(?:[^"\\]|\\.)*"', theirs)
    if "st_mode" in theirs:
        fields = dict(re.findall(r"(st_mode|st_size)[:=] ?([^,}]+)", ours)), dict(re.findall(r"(st_mode|st_size)[:=] ?([^,}]+)", theirs))
        ours, theirs = fields
        return mode(ours["st_mode"].strip()) == mode(theirs["st_mode"].strip()) and ours.get("st_size", "").strip() == theirs.get("st_size", "").strip()
    mine, other = words(ours), words(theirs)
    is_found = all(any(same_word(word, one) for one in other) for word in mine)
    # strace shows more fields of structures.
    return is_found and (len(mine) == len(other) or ours.startswith(("{", "[")))


def result(text):
    """Returns the number and the error of a result."""
    match = re.match(r"(-?0x[0-9a-f]+|-?\d+|\?)(?: (E[A-Z0-9]+))?", text)
    return match.groups() if match else (text, None)


def main():
    strace_path, rperf_path, calls_path = sys.argv[1:4]
    theirs = lines(strace_path, r"(?:\d+ +)?(\w+)\((.*?)\)\s+= (.*)$")
    ours = lines(rperf_path, r".*?\): \S+/\d+ (\w+)\((.*)\)\s+= (.*)$")
    names = table(calls_path)
    compared, problems, seen = 0, [], set()
    if len(ours) != len(theirs):
        problems.append(("", "", f"{len(ours)} calls", f"{len(theirs)} calls"))
    for (name, given, returned), (other, other_given, other_returned) in zip(ours, theirs):
        if name != other:
            problems.append((name, "", name, other))
            continue
        values = arguments(other_given)
        flags = re.search(r"\(flags (.*)\)", other_returned)
        if flags:
            if not same("result", returned, flags[1]):
                problems.append((name, "result", returned, other_returned))
        elif result(returned)[1] != result(other_returned)[1]:
            problems.append((name, "result", returned, other_returned))
        elif not returned.startswith(("0x", "?")) and not same("result", *(re.sub(r"[ (].*", "", text) for text in (returned, other_returned))):
            problems.append((name, "result", returned, other_returned))
        for argument in arguments(given):
            key, _, value = argument.partition(": ")
            if key not in names.get(name, []):
                problems.append((name, key, value, "(no such argument)"))
                continue
            index = names[name].index(key)
            if index >= len(values):
                # strace leaves out what has no meaning; so must rperf.
                problems.append((name, key, value, "(not printed)"))
                continue
            compared += 1
            if re.fullmatch(r"0x[0-9a-f]{9,}", value) and re.match(r"0x[0-9a-f]{9,}", values[index]):
                continue
            if not same(key, value, values[index]):
                problems.append((name, key, value, values[index]))
    failed = False
    for name, key, mine, other in problems:
        reason = EXPECTED.get((name, key))
        seen.add((name, key))
        failed |= reason is None
        print(f"{name} {key}: {mine} | {other} | {reason or 'UNEXPECTED'}")
    for gone in set(EXPECTED) - seen:
        failed = True
        print(f"{gone[0]} {gone[1]}: no difference any more")
    print(f"{len(ours)} calls, {compared} arguments compared, {len(problems)} differences")
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
