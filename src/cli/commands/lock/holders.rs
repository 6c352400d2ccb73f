//! What the holders of futexes did while others waited: `lock contention --holders`.

use std::collections::HashMap;

use clap::ArgMatches;
use rperf_analysis::lock::{
    FUTEX_EVENTS, FUTEX_WAITS, FutexHolders, HolderRow, HolderState, HolderTable,
};
use rperf_replay::World;
use rperf_resolve::Frame;
use rperf_view::lock::holders::{
    HolderSum, HolderSums, state_name, write_holders, write_holders_json,
};

use super::analysis::{
    LockQuery, SCHED_EVENTS, capture_event, frame_text, has_switches, process_by_tid,
    without_owners, without_switches,
};
use super::details::{LockDetails, is_kernel_address, user_callers};
use super::flame::{FlameFile, FlameStack, StackNamer};
use super::output::{print_json, print_text, refuse_dump_with_json};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::options::{count, flag};
use crate::cli::record_dump;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::{conclude, losses};
use crate::cli::shared::recorded_fields::{event_layouts, require_fields};
use crate::cli::symbol_options::SymbolSources;

/// Prints or draws the time of holders.
pub(super) fn run(
    matches: &ArgMatches,
    context: &Context,
    query: &LockQuery,
) -> Result<ExitStatus, CliError> {
    refuse_dump_with_json(matches)?;
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    record_dump::print(&analysis, matches, "lock")?;
    let resolver = analysis.resolver(&symbols);
    let layouts = event_layouts(&analysis)?;
    // The event whose samples are waits for futexes with their owners (here: holders), captured by a BPF program.
    if capture_event(&analysis, FUTEX_WAITS).is_none() {
        return Err(without_owners(&analysis));
    }
    if !has_switches(&analysis, &layouts) {
        return Err(without_switches(&analysis));
    }
    let needed = [FUTEX_EVENTS.as_slice(), &SCHED_EVENTS];
    let is_read = |name: &str| needed.iter().any(|events| events.contains(&name));
    require_fields(&analysis, is_read, "lock record")?;
    let mut holders = FutexHolders::new(process_by_tid(analysis.replay.world()));
    let details = LockDetails::new(&analysis, &resolver, query)?.with_holders(&analysis);
    let pass = details.pass(&layouts, &needed).with_switches();
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut holders)?;
    analysis.end_progress();
    // Stretches of time with lost records, in which numbers of waits may be wrong: `conclude` warns of them.
    let lost_stretches = std::mem::take(&mut holders.losses);
    let table = holders.finish();
    let namer = StackNamer::new(&resolver);
    let flame = FlameFile::given(matches);
    if table.rows.is_empty() && flag(matches, "json") != Some(true) {
        let draws = flame.is_some();
        note_without_holders(&analysis, draws)?;
        return conclude(&analysis, delivered, &lost_stretches, "waits", matches);
    }
    if let Some(file) = flame {
        let stacks = table.rows.iter().map(|row| flame_stack(row, &namer));
        file.write(stacks, "Holders of Locks Flame Graph", context)?;
        return conclude(&analysis, delivered, &lost_stretches, "waits", matches);
    }
    let names = HolderNames {
        namer,
        world: analysis.replay.world(),
        max_stack: match count(matches, "verbose") > 0 || flag(matches, "json") == Some(true) {
            true => query.max_stack,
            false => 0,
        },
    };
    let sums = HolderSums {
        rows: names.sums(&table).into_iter().take(query.entries).collect(),
        waited: table.waited,
        lost: losses(&analysis).lost,
    };
    print_sums(matches, context, &sums)?;
    conclude(&analysis, delivered, &lost_stretches, "waits", matches)
}

/// Prints the table, or JSON.
fn print_sums(matches: &ArgMatches, context: &Context, sums: &HolderSums) -> Result<(), CliError> {
    if flag(matches, "json") == Some(true) {
        return print_json(matches, context, |out| write_holders_json(out, sums));
    }
    let with_titles = !context.output.is_quiet();
    print_text(matches, context, |out| {
        write_holders(out, sums, with_titles)
    })
}

/// Prints a note that no holder of a futex is known.
///
/// # Errors
///
/// A flame graph is requested: there is nothing to draw.
fn note_without_holders(analysis: &Analysis<'_>, draws: bool) -> Result<(), CliError> {
    let (path, program) = (analysis.input.path.display(), analysis.context.program);
    let message = format!(
        "{path}: no thread waited for a futex with a known holder; record with '{program} lock record --user --holders' as root while threads wait for mutexes"
    );
    if draws {
        return Err(CliError::message(255, message));
    }
    analysis.context.note(message);
    Ok(())
}

/// Names functions and stacks.
struct HolderNames<'n, 'r> {
    namer: StackNamer<'n, 'r>,
    world: &'n World,
    /// The maximum number of frames below a printed line ([`HolderSum`]); 0 if stacks are not printed.
    max_stack: usize,
}

impl HolderNames<'_, '_> {
    /// Returns the sums of the table's rows (one for each state and stack) by state and function, most time first. The
    /// stack of a sum is that of its row with the most time.
    fn sums(&self, table: &HolderTable) -> Vec<HolderSum> {
        let mut sums: Vec<HolderSum> = Vec::new();
        let mut by_name: HashMap<(HolderState, String), usize> = HashMap::new();
        // Rows are sorted by time, so the first row of a sum has the most time: the sum gets the stack of this row.
        for row in &table.rows {
            let name = self.function(row);
            match by_name.get(&(row.state, name.clone())) {
                Some(place) => {
                    if let Some(sum) = sums.get_mut(*place) {
                        sum.count += row.count;
                        sum.nanos += row.nanos;
                    }
                }
                None => {
                    by_name.insert((row.state, name.clone()), sums.len());
                    sums.push(HolderSum {
                        state: row.state,
                        name,
                        count: row.count,
                        nanos: row.nanos,
                        stack: self.stack(row),
                    });
                }
            }
        }
        sums.sort_by(|left, right| {
            let order = right.nanos.cmp(&left.nanos);
            order.then_with(|| (left.state, &left.name).cmp(&(right.state, &right.name)))
        });
        sums
    }

    /// Returns the name of the innermost user function outside the C library, otherwise of the innermost user function, otherwise
    /// of the innermost function; `Unknown` if the stack is empty.
    fn function(&self, row: &HolderRow) -> String {
        let frames = self.namer.frames(&row.stack);
        let is_user = |frame: &&Frame| !is_kernel_address(frame.ip);
        let user: Vec<Frame> = frames.iter().filter(is_user).copied().collect();
        let caller = user_callers(self.world, &user).first().copied();
        let caller_frame = frames.iter().find(|frame| Some(frame.ip) == caller);
        match caller_frame.or(frames.first()) {
            Some(frame) => self.namer.name(frame),
            None => "Unknown".to_owned(),
        }
    }

    fn stack(&self, row: &HolderRow) -> Vec<String> {
        let frames = row.stack.frames.iter().take(self.max_stack);
        let named = frames.map(|ip| {
            let process = row.stack.process.filter(|_| !is_kernel_address(*ip));
            frame_text(self.namer.resolver, process, *ip)
        });
        named.collect()
    }
}

fn flame_stack(row: &HolderRow, namer: &StackNamer<'_, '_>) -> FlameStack {
    FlameStack {
        root: format!("[{}]", state_name(row.state)),
        frames: namer.named(&row.stack),
        nanos: row.nanos,
    }
}
