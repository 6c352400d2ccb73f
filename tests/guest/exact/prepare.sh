# A deterministic workload, and its cycles.
rounds="rounds 1000"
# shellcheck disable=SC2086 # two words
perf stat -x , -e cycles:u -o /out/counted -- ./load $rounds
