//! The tables of `lock`, in the layout of perf.

pub mod chains;
mod histograms;
pub mod holders;
pub mod json;
pub mod recorded;

use std::io::{self, Write};

use rperf_analysis::lock::{BadSequences, FUTEX, FUTEX_PI, LockColumn, LockKey, LockRow};

// The kernel's flags of waits: `LCB_F_*` of `lock:contention_begin`.
const SPIN: u64 = 1;
const READ: u64 = 1 << 1;
const WRITE: u64 = 1 << 2;
const RT: u64 = 1 << 3;
const PERCPU: u64 = 1 << 4;
const MUTEX: u64 = 1 << 5;

/// The kinds of locks: the flags of waits (those of the kernel, or [`FUTEX`] and [`FUTEX_PI`] of user programs), the name, and
/// the name of the lock without the access (`:R` or `:W`).
const KINDS: [(u64, &str, &str); 16] = [
    (0, "semaphore", "semaphore"),
    (SPIN, "spinlock", "spinlock"),
    (SPIN | READ, "rwlock:R", "rwlock"),
    (SPIN | WRITE, "rwlock:W", "rwlock"),
    (READ, "rwsem:R", "rwsem"),
    (WRITE, "rwsem:W", "rwsem"),
    (RT, "rt-mutex", "rt-mutex"),
    (RT | READ, "rwlock-rt:R", "rwlock-rt"),
    (RT | WRITE, "rwlock-rt:W", "rwlock-rt"),
    (PERCPU | READ, "pcpu-sem:R", "percpu-rwsem"),
    (PERCPU | WRITE, "pcpu-sem:W", "percpu-rwsem"),
    (MUTEX, "mutex", "mutex"),
    (MUTEX | SPIN, "mutex", "mutex"),
    // A name only for the selection of waits: [`kind`] and [`kind_without_access`] return the names of the entry before.
    (MUTEX | SPIN, "mutex:spin", "mutex-spin"),
    (FUTEX, "futex", "futex"),
    (FUTEX_PI, "futex:PI", "futex:PI"),
];

/// Returns the name of the kind of lock with these flags; `unknown` if there is none.
#[must_use]
pub fn kind(flags: u64) -> &'static str {
    let known = KINDS.iter().find(|(known_flags, ..)| *known_flags == flags);
    known.map_or("unknown", |(_, name, _)| name)
}

/// Returns the name of the kind of lock without the access, as perf names locks of `-l`: readers and writers wait for the
/// same lock.
#[must_use]
pub fn kind_without_access(flags: u64) -> &'static str {
    let known = KINDS.iter().find(|(known_flags, ..)| *known_flags == flags);
    known.map_or("unknown", |(.., lock)| lock)
}

/// Returns all values of the flags that waits for a kind of lock can have; empty if the name is unknown. A name without access,
/// such as `rwlock`, selects readers and writers, `rwlock:R` only readers. `futex` also selects `futex:PI`.
#[must_use]
pub fn kind_flags(name: &str) -> Vec<u64> {
    let matching = KINDS.iter().filter(|(_, kind, lock)| {
        let rest = kind.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':')) || *lock == name
    });
    let mut flags: Vec<u64> = matching.map(|(flags, ..)| *flags).collect();
    // Two of the entries that `mutex` matches have the same flags.
    flags.dedup();
    flags
}

/// Returns nanoseconds with a unit, in at least `width` columns.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "as perf, which divides single-precision numbers"
)]
pub fn time(nanoseconds: u64, width: usize) -> String {
    const UNITS: [(f32, &str); 5] = [
        (3.6e12, "h "),
        (6e10, "m "),
        (1e9, "s "),
        (1e6, "ms"),
        (1e3, "us"),
    ];
    let width = width.saturating_sub(" ns".len());
    let value = nanoseconds as f32;
    match UNITS.iter().find(|(unit, _)| value >= *unit) {
        Some((unit, name)) => format!("{:>width$.2} {name}", f64::from(value / unit)),
        None => format!("{nanoseconds:width$} ns"),
    }
}

/// Returns title and width of a column.
fn heading(column: LockColumn) -> (&'static str, usize) {
    match column {
        LockColumn::Acquired => ("acquired", 10),
        LockColumn::Contended => ("contended", 10),
        LockColumn::Average => ("avg wait", 12),
        LockColumn::Total => ("total wait", 12),
        LockColumn::Max => ("max wait", 12),
        LockColumn::Min => ("min wait", 12),
        LockColumn::RunQueue => ("run queue", 12),
    }
}

/// A row with the names that its table shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRow {
    /// The row.
    pub row: LockRow,
    /// The caller, the lock, the thread or the path of the cgroup.
    pub name: String,
    /// In a row of an owner: the owner's process, if it is known and differs from that of the waiting threads (of which the first
    /// is compared), as it can with a futex that processes share. Otherwise `None`.
    pub owner_process: Option<u32>,
    /// The container of the cgroup, if it belongs to one.
    pub container: Option<String>,
    /// The frames shown below the row, innermost first.
    pub stack: Vec<String>,
    /// For locks of user programs: the threads that ended the waits, most waits first. Empty if not shown.
    pub wakers: Vec<NamedThread>,
    /// Threads that held the locks when waits for them began, most waits first. Empty if unknown or not shown.
    pub owners: Vec<NamedThread>,
}

/// A thread that held locks or ended waits of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedThread {
    /// The thread id.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// The number of waits that the thread ended, or at whose beginning it held the lock.
    pub waits: u64,
}

/// The columns after the numbers in `lock contention`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentionTable {
    /// Kind and caller.
    Callers,
    /// Thread id and name.
    Threads,
    /// Address, name and kind of locks.
    Addresses,
    /// Id and name of the threads that held the locks.
    Owners,
    /// Paths of cgroups.
    Cgroups,
}

/// What `lock contention` prints of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentionLayout<'l> {
    /// The columns after the numbers.
    pub table: ContentionTable,
    /// The numbers.
    pub columns: &'l [LockColumn],
    /// The text between separated values; `None` for a table.
    pub separator: Option<&'l str>,
    /// Whether the distribution of the waits follows each row of a table.
    pub with_histograms: bool,
    /// Whether the container of a cgroup follows its row in a table.
    pub with_containers: bool,
}

/// Writes the titles of `lock contention`.
///
/// # Errors
///
/// Those of `out`.
pub fn write_contention_titles(
    out: &mut dyn Write,
    layout: &ContentionLayout<'_>,
) -> io::Result<()> {
    let ContentionLayout { table, columns, .. } = *layout;
    if let Some(separator) = layout.separator {
        write!(out, "# output: ")?;
        for column in columns {
            write!(out, "{}{separator} ", heading(*column).0)?;
        }
        return match table {
            ContentionTable::Callers => writeln!(out, "type{separator} caller"),
            ContentionTable::Threads => writeln!(out, "pid{separator} comm"),
            ContentionTable::Owners => writeln!(out, "pid{separator} owner"),
            ContentionTable::Cgroups => writeln!(out, "cgroup"),
            ContentionTable::Addresses => {
                writeln!(out, "address{separator} symbol{separator} type")
            }
        };
    }
    write_titles(out, columns)?;
    match table {
        ContentionTable::Callers => writeln!(out, "  {:>10}   caller\n", "type"),
        ContentionTable::Threads => writeln!(out, "  {:>10}   comm\n", "pid"),
        ContentionTable::Owners => writeln!(out, "  {:>10}   owner\n", "pid"),
        ContentionTable::Cgroups => writeln!(out, "  cgroup\n"),
        ContentionTable::Addresses => writeln!(out, "  {:>16}   symbol\n", "address"),
    }
}

fn write_titles(out: &mut dyn Write, columns: &[LockColumn]) -> io::Result<()> {
    for column in columns {
        let (title, width) = heading(*column);
        write!(out, "{title:>width$} ")?;
    }
    Ok(())
}

/// Writes the rows of `lock contention`. Times of separated values are in nanoseconds.
///
/// # Errors
///
/// Those of `out`.
pub fn write_contention(
    out: &mut dyn Write,
    layout: &ContentionLayout<'_>,
    rows: &[NamedRow],
) -> io::Result<()> {
    let ContentionLayout { table, columns, .. } = *layout;
    if let Some(separator) = layout.separator {
        return write_separated(out, table, columns, rows, separator);
    }
    for named in rows {
        let NamedRow {
            row, name, stack, ..
        } = named;
        write_values(out, columns, row)?;
        match (table, &row.key) {
            (ContentionTable::Addresses, _) => {
                let lock = kind_without_access(row.flags);
                writeln!(out, "  {:016x}   {name} ({lock})", row.address)?;
            }
            (ContentionTable::Cgroups, _) => writeln!(out, "  {name}")?,
            (_, key) if let Some(tid) = thread(key) => {
                writeln!(out, "  {tid:10}   {name}{}", owner_process(named))?;
            }
            _ => writeln!(out, "  {:>10}   {name}", kind(row.flags))?,
        }
        for frame in stack {
            writeln!(out, "\t\t\t{frame}")?;
        }
        write_threads_of(out, named)?;
        if let Some(container) = named.container.as_ref().filter(|_| layout.with_containers) {
            writeln!(out, "\t\t\tcontainer {container}")?;
        }
        if layout.with_histograms {
            histograms::write_histogram(out, row)?;
        }
    }
    Ok(())
}

/// Returns the id of a row's thread, signed as in perf: the kernel records the ids of a thread that has exited as -1. An unknown
/// owner is -1, too. `None` if the row is not that of a thread.
fn thread(key: &LockKey) -> Option<i32> {
    match key {
        LockKey::Thread(tid) => Some(tid.cast_signed()),
        LockKey::Owner(tid) => Some(tid.map_or(-1, u32::cast_signed)),
        _ => None,
    }
}

/// Returns the text for [`NamedRow::owner_process`]. Empty if it is `None`, or if the owner is the main thread of that process:
/// the thread id in the row is then also the process id.
fn owner_process(row: &NamedRow) -> String {
    match row.owner_process {
        Some(pid) if thread(&row.row.key) != Some(pid.cast_signed()) => format!(" (process {pid})"),
        _ => String::new(),
    }
}

/// Writes which threads held the locks of a row, and which ended its waits.
fn write_threads_of(out: &mut dyn Write, row: &NamedRow) -> io::Result<()> {
    for (verb, threads) in [("held by", &row.owners), ("woken by", &row.wakers)] {
        let threads = threads.iter();
        let threads = threads.map(|thread| {
            format!(
                "{} ({}): {}",
                thread.comm,
                thread.tid.cast_signed(),
                thread.waits
            )
        });
        let threads: Vec<String> = threads.collect();
        if !threads.is_empty() {
            writeln!(out, "\t\t\t{verb} {}", threads.join(", "))?;
        }
    }
    Ok(())
}

fn write_separated(
    out: &mut dyn Write,
    table: ContentionTable,
    columns: &[LockColumn],
    rows: &[NamedRow],
    separator: &str,
) -> io::Result<()> {
    for named in rows {
        let NamedRow {
            row, name, stack, ..
        } = named;
        for column in columns {
            write!(out, "{}{separator} ", column.value(row))?;
        }
        match (table, &row.key) {
            (ContentionTable::Addresses, _) => {
                let lock = kind_without_access(row.flags);
                write!(out, "{:x}{separator} {name}{separator} {lock}", row.address)?;
            }
            (ContentionTable::Cgroups, _) => write!(out, "{name}")?,
            (_, key) if let Some(tid) = thread(key) => {
                write!(out, "{tid}{separator} {name}{}", owner_process(named))?;
            }
            _ => write!(out, "{}{separator} {name}", kind(row.flags))?,
        }
        for frame in stack {
            write!(out, "{separator} {frame}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_values(out: &mut dyn Write, columns: &[LockColumn], row: &LockRow) -> io::Result<()> {
    for column in columns {
        let (_, width) = heading(*column);
        let value = column.value(row);
        match column.is_time() {
            true => write!(out, "{} ", time(value, width))?,
            false => write!(out, "{value:width$} ")?,
        }
    }
    Ok(())
}

/// The width of names in `lock report`.
const NAME_WIDTH: usize = 20;
/// The number of characters of a truncated name before the `...`.
const TRUNCATED_NAME: usize = 16;

/// Writes the titles of `lock report`.
///
/// # Errors
///
/// Those of `out`.
pub fn write_report_titles(out: &mut dyn Write, columns: &[LockColumn]) -> io::Result<()> {
    write!(out, "{:>NAME_WIDTH$} ", "Name")?;
    write_titles(out, columns)?;
    writeln!(out, "\n")
}

/// Writes the rows of `lock report`.
///
/// # Errors
///
/// Those of `out`.
pub fn write_report(
    out: &mut dyn Write,
    columns: &[LockColumn],
    rows: &[NamedRow],
) -> io::Result<()> {
    for NamedRow { row, name, .. } in rows {
        // As in perf, names of threads are complete; other names are truncated even if they just fit the column.
        let is_whole = matches!(row.key, LockKey::Thread(_) | LockKey::Owner(_))
            || name.chars().count() < NAME_WIDTH;
        let name = match is_whole {
            true => name.clone(),
            false => name
                .chars()
                .take(TRUNCATED_NAME)
                .chain("...".chars())
                .collect(),
        };
        write!(out, "{name:>NAME_WIDTH$} ")?;
        write_values(out, columns, row)?;
        writeln!(out)?;
    }
    Ok(())
}

/// What `lock` prints below its tables about sequences of events in an impossible order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SequenceChecks {
    /// The number of rows with such a sequence, among those counted in `total`.
    pub bad: usize,
    /// The number of counted rows: all rows, except that `lock report -E N`, as in perf, counts only those up to the Nth one
    /// shown.
    pub total: usize,
    /// The numbers of rows with such a sequence, by the event at which it was found. Unlike `bad`, they include rows that are not
    /// counted in `total`.
    pub sequences: BadSequences,
}

/// Writes the result of the checks in the text of perf 7.2; nothing without rows.
///
/// # Errors
///
/// Those of `out`.
pub fn write_checks(out: &mut dyn Write, checks: &SequenceChecks) -> io::Result<()> {
    let SequenceChecks {
        bad,
        total,
        sequences,
    } = checks;
    if *total == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "\n=== output for debug ===\n\nbad: {bad}, total: {total}"
    )?;
    writeln!(out, "bad rate: {} %", percent(*bad, *total))?;
    writeln!(out, "histogram of events caused bad sequence")?;
    for (name, count) in [
        ("acquire", sequences.acquire),
        ("acquired", sequences.acquired),
        ("contended", sequences.contended),
        ("release", sequences.release),
    ] {
        writeln!(out, " {name:>10}: {count}")?;
    }
    Ok(())
}

/// Numbers of waits that are missing in the sums of the BPF programs, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MissingWaits {
    /// Too many waits were open at the same time, or too many tasks observed.
    pub tasks: u64,
    /// No stack, or no room for it.
    pub stacks: u64,
    /// The end was before the beginning.
    pub times: u64,
    /// Too many rows (`--map-nr-entries`).
    pub rows: u64,
}

impl MissingWaits {
    /// Returns the number of all missing waits.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.tasks + self.stacks + self.times + self.rows
    }
}

/// Writes how many waits are missing, in the text of perf 7.2. `summed` is the number of waits in the sums.
///
/// # Errors
///
/// Those of `out`.
pub fn write_missing(out: &mut dyn Write, missing: &MissingWaits, summed: u64) -> io::Result<()> {
    let bad = missing.total();
    let total = bad.saturating_add(summed);
    let as_usize = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    writeln!(
        out,
        "\n=== output for debug ===\n\nbad: {bad}, total: {total}"
    )?;
    writeln!(
        out,
        "bad rate: {} %",
        percent(as_usize(bad), as_usize(total.max(1)))
    )?;
    writeln!(out, "histogram of failure reasons")?;
    for (name, count) in [
        ("task", missing.tasks),
        ("stack", missing.stacks),
        ("time", missing.times),
        ("data", missing.rows),
    ] {
        writeln!(out, " {name:>10}: {count}")?;
    }
    Ok(())
}

/// Returns a percentage with two decimals.
#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of rows or waits, for two decimals"
)]
fn percent(part: usize, whole: usize) -> String {
    format!("{:.2}", part as f64 / whole as f64 * 100.0)
}

/// Writes the ids and names of threads, for `lock info -t`.
///
/// # Errors
///
/// Those of `out`.
pub fn write_threads(out: &mut dyn Write, threads: &[(u32, String)]) -> io::Result<()> {
    writeln!(out, "{:>10}: comm", "Thread ID")?;
    for (tid, name) in threads {
        writeln!(out, "{:10}: {name}", tid.cast_signed())?;
    }
    Ok(())
}

/// Writes the addresses and names of locks, for `lock info -m`.
///
/// # Errors
///
/// Those of `out`.
pub fn write_instances(out: &mut dyn Write, rows: &[NamedRow]) -> io::Result<()> {
    writeln!(out, "Address of instance: name of class")?;
    for NamedRow { row, name, .. } in rows {
        writeln!(out, " {:#x}: {name}", row.address)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        MUTEX, PERCPU, READ, RT, SPIN, WRITE, kind, kind_flags, kind_without_access, time,
    };

    #[test]
    fn times_have_two_decimals_and_a_unit() {
        assert_eq!(time(999, 12), "      999 ns");
        assert_eq!(time(3_525, 12), "     3.53 us");
        assert_eq!(time(1_410_000, 12), "     1.41 ms");
        assert_eq!(time(61_000_000_000, 12), "     1.02 m ");
    }

    #[test]
    fn kinds_are_found_by_name_with_and_without_access() {
        assert_eq!(kind_flags("rwsem"), [READ, WRITE]);
        assert_eq!(kind_flags("rwsem:W"), [WRITE]);
        assert_eq!(kind_flags("mutex"), [MUTEX, MUTEX | SPIN]);
        assert!(kind_flags("rw").is_empty());
        let (percpu_reader, percpu_writer) = (PERCPU | READ, PERCPU | WRITE);
        assert_eq!(kind_flags("percpu-rwsem"), [percpu_reader, percpu_writer]);
        assert_eq!(kind_flags("pcpu-sem"), [percpu_reader, percpu_writer]);
        assert_eq!(kind_flags("pcpu-sem:R"), [percpu_reader]);
        assert_eq!(kind_flags("mutex:spin"), kind_flags("mutex-spin"));
        assert_eq!(kind_flags("mutex-spin"), [MUTEX | SPIN]);
        let unknown_flag = MUTEX << 1;
        assert_eq!(
            (kind(MUTEX | SPIN), kind(SPIN), kind(unknown_flag)),
            ("mutex", "spinlock", "unknown")
        );
    }

    #[test]
    fn locks_have_one_name_for_readers_and_writers() {
        let flags = [
            READ,
            WRITE,
            SPIN | READ,
            RT | READ,
            PERCPU | WRITE,
            MUTEX | SPIN,
        ];
        let names = flags.map(kind_without_access);
        assert_eq!(
            names,
            [
                "rwsem",
                "rwsem",
                "rwlock",
                "rwlock-rt",
                "percpu-rwsem",
                "mutex"
            ]
        );
        assert_eq!(
            kind_without_access(rperf_analysis::lock::FUTEX_PI),
            "futex:PI"
        );
    }
}
