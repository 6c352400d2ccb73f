"""Runs the statements of docs/fleet.md in DuckDB and in Spark, and compares their answers with each other and with reports.

    python check.py RPERF PAGE RECORDING...     in a folder with the data set 'fleet'
"""

import collections
import csv
import decimal
import io
import re
import subprocess
import sys

import duckdb
from pyspark.sql import SparkSession

TABLES = ["recordings", "samples", "stacks", "frames", "losses"]


def statements(page):
    """The SQL statements of the page, each with its heading."""
    with open(page) as text:
        return re.findall(r"^## (.*?)\n.*?```sql\n(.*?)```", text.read(), re.S | re.M)


def plain(value):
    """A value in a form common to both engines: a number as float with two decimals, text, or None."""
    if isinstance(value, (int, float, decimal.Decimal)):
        return round(float(value), 2)
    return None if value is None else str(value)


def rows(answer):
    return [tuple(plain(value) for value in row) for row in answer]


def open_duckdb():
    for table in TABLES:
        files = f"fleet/{table}/**/*.parquet"
        duckdb.sql(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{files}', hive_partitioning = true)")


def open_spark():
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for table in TABLES:
        spark.read.parquet(f"fleet/{table}").createOrReplaceTempView(table)
    return spark


def report(rperf, file, *options):
    """The rows of 'report --csv', as dictionaries."""
    command = [rperf, "report", "-q", "-i", file, "--csv", *options]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(io.StringIO(output)))


def reported_functions(rperf, files):
    """Periods of cpu-clock by function and object, summed over the reports of all files."""
    sums = collections.Counter()
    for file in files:
        options = ["--no-children", "-g", "none", "-s", "sym,dso", "-F", "period,sym,dso"]
        for row in report(rperf, file, *options):
            if row["event"] == "cpu-clock":
                # Symbols begin with the level: '[.] compute'.
                sums[row["symbol"].split("] ", 1)[-1], row["dso"]] += int(row["period"])
    return sums


def check(name, is_equal, detail):
    print(f"{'ok' if is_equal else 'DIFFERS'}: {name}")
    if not is_equal:
        print(detail)
    return is_equal


def main():
    rperf, page, *files = sys.argv[1:]
    open_duckdb()
    spark = open_spark()
    answers = {}
    is_ok = True
    queries = statements(page)
    assert len(queries) == 5, [heading for heading, _ in queries]
    for heading, statement in queries:
        by_duckdb = rows(duckdb.sql(statement).fetchall())
        by_spark = rows(tuple(row) for row in spark.sql(statement).collect())
        answers[heading] = by_duckdb
        same = by_duckdb == by_spark and len(by_duckdb) > 0
        is_ok &= check(f"{heading} ({len(by_duckdb)} rows)", same, f"DuckDB: {by_duckdb}\nSpark: {by_spark}")
    top, share, change, waits, lost = answers.values()

    reported = reported_functions(rperf, files)
    # Code without a function has the name of its object in brackets; 'report' shows addresses.
    queried = {(function, dso): period for function, dso, period in top if not function.startswith("[")}
    differing = {name: (period, reported[name]) for name, period in queried.items() if reported[name] != period}
    is_ok &= check("periods are those of report", queried and not differing, differing)
    is_ok &= check("the first function is that of report", top[0][:2] == reported.most_common(1)[0][0],
                   f"{top[0]} {reported.most_common(3)}")

    builds = {row[1] for row in share}
    is_ok &= check("two builds, on the hosts that ran them", len(builds) == 2 and len(share) >= 3, share)
    is_ok &= check("shares of days are percentages", all(0 <= row[1] <= 100 for row in change), change)
    is_ok &= check("sleep waits at least 0.2 s", any(row[2] >= 2e8 for row in waits), waits)
    is_ok &= check("losses are found", lost[0][2] > 0 and lost[-1][2] == 0, lost)
    sys.exit(0 if is_ok else 1)


main()
