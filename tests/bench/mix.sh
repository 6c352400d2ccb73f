#!/bin/sh
# A busy machine: compilers of C, C++ and Rust on generated sources, Python, and a deep call tree, in parallel.
# usage: mix.sh SECONDS PATHS   (PATHS: the program of paths.cpp; scratch files in a folder that is deleted)
set -eu
end=$(($(date +%s) + $1))
paths=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
has_time() { [ "$(date +%s)" -lt "$end" ]; }
run() { timeout $((end - $(date +%s))) "$@" || true; }

# Writes N functions in each language.
sources() {
    awk -v n="$1" 'BEGIN {
        print "double f0(double x) { return x; }" > "some.c"
        print "#include <algorithm>\n#include <map>\n#include <regex>\n#include <string>\n#include <vector>" > "some.cpp"
        print "pub fn f0(x: f64) -> f64 { x }" > "some.rs"
        for (i = 1; i <= n; i++) {
            printf "double f%d(double x) { double s = 0; for (int i = 0; i < %d; i++) s += i %% 3 ? f%d(x + i) : s / (i + 1); return s; }\n", i, i, i - 1 > "some.c"
            printf "int g%d(std::vector<int>& v, std::map<std::string, int>& m) { std::sort(v.begin(), v.end(), [](int a, int b) { return a %% %d < b %% %d; }); return m[\"%d\"] + std::regex_match(\"%d\", std::regex(\"[0-%d]\")); }\n", i, i, i, i, i, i % 10 > "some.cpp"
            printf "#[inline(never)] pub fn f%d(x: f64) -> f64 { let mut v: Vec<(u32, String)> = (0..%d).map(|i| (i, format!(\"{i}\"))).collect(); v.sort_by_key(|a| a.1.len()); v.iter().map(|a| f%d(x + f64::from(a.0))).sum() }\n", i, i, i - 1 > "some.rs"
        }
    }'
}
sources 60

compile_c() { while has_time; do run gcc -O2 -c some.c -o c.o; run g++ -O2 -g -c some.cpp -o cpp.o; done; }
compile_rust() { while has_time; do run rustc --edition 2021 -O --crate-type lib some.rs -o some.rlib; done; }
python() {
    while has_time; do
        run python3 -c '
import json, re, random
def tree(depth): return [tree(depth - 1) for _ in range(random.randrange(4))] if depth else {"a": random.random()}
def size(of): return sum(map(size, of)) if isinstance(of, list) else 1
for _ in range(2000):
    made = tree(7)
    size(json.loads(json.dumps(made)))
    re.findall(r"(\d+\.)+", json.dumps(made)[:2000])
    sorted((str(random.random()) for _ in range(500)), key=lambda word: word[::-1])'
    done
}
deep() { while has_time; do run "$paths" 1 5 57 400; sleep 3; done; }

compile_c 2>/dev/null &
compile_rust 2>/dev/null &
python &
deep &
wait
