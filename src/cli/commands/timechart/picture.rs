//! Builds the picture from the results of the analysis.

use std::collections::BTreeMap;

use rperf_analysis::sched::LostStretch;
use rperf_analysis::timechart::{CpuLane, PieceContent, TaskLane, Timechart};
use rperf_flame::{ChartBox, ChartGap, ChartRow, IDLE_PAINTS, Paint, RowKind, TimeChart};
use rperf_names::{counted, is_or_are, was_or_were};
use rperf_resolve::Resolver;
use rperf_wire::name_text;

use super::args::{ChartParts, TimechartRequest};
use super::arrows::arrows;
use super::calls::call_row;
use super::stack_names::SleepStacks;
use super::tasks::{ShownTasks, TaskRows};
use crate::cli::error::CliError;
use crate::cli::shared::analysis::Analysis;

/// The maximum number of CPUs that are drawn.
const MAX_CPUS: usize = 1024;
/// The least height of a share of time that is not zero, in percent, so that it remains visible.
const MIN_SHARE: u64 = 8;
/// The least height of a frequency, in percent.
const MIN_FREQUENCY: u64 = 5;
/// The state, in [`CpuLane::usage`], of a run that is not highlighted.
const NORMAL_RUN: usize = 0;

/// Builds the picture of a chart.
pub(super) struct ChartBuilder<'c> {
    pub(super) chart: &'c Timechart,
    request: &'c TimechartRequest,
    stacks: SleepStacks<'c>,
    shown: ShownTasks,
    /// CPUs from top to bottom.
    cpus: Vec<u32>,
    /// Whether tasks are drawn with their system calls instead of their states; then CPUs are not drawn.
    draws_calls: bool,
    /// The reason if reading ended early.
    damage: Option<String>,
}

impl<'c> ChartBuilder<'c> {
    /// Chooses CPUs and tasks.
    ///
    /// # Errors
    ///
    /// Status 255: `-t` without a recorded topology.
    pub(super) fn new(
        chart: &'c Timechart,
        request: &'c TimechartRequest,
        resolver: &'c Resolver<'c>,
        analysis: &Analysis<'_>,
    ) -> Result<Self, CliError> {
        let draws_calls = draws_calls(chart, request.parts);
        let mut cpus: Vec<u32> = match draws_calls {
            true => Vec::new(),
            false => chart.cpus.keys().copied().collect(),
        };
        if request.by_topology {
            sort_by_topology(&mut cpus, analysis)?;
        }
        cpus.truncate(MAX_CPUS);
        let shown = match request.parts {
            ChartParts::Power => ShownTasks::default(),
            _ => ShownTasks::choose(chart, request, draws_calls),
        };
        let diagnostics = analysis.replay.diagnostics();
        Ok(Self {
            chart,
            request,
            stacks: SleepStacks::new(chart, resolver),
            shown,
            cpus,
            draws_calls,
            damage: diagnostics.end.map(|end| end.to_string()),
        })
    }

    /// Returns the picture.
    pub(super) fn build(&self) -> TimeChart {
        let mut rows: Vec<ChartRow> = self.cpus.iter().map(|cpu| self.cpu_row(*cpu)).collect();
        let first_task = rows.len();
        let lanes = self.shown.lanes(self.chart);
        if self.draws_calls {
            rows.extend(lanes.map(call_row));
        } else {
            let mut tasks = TaskRows::new(&self.stacks);
            rows.extend(lanes.map(|lane| tasks.row(lane)));
        }
        TimeChart {
            title: self.title(),
            notes: self.notes(),
            start: self.chart.start,
            end: self.chart.end,
            width: self.request.width,
            arrows: arrows(self.chart, &self.shown, first_task),
            gaps: self.gaps(),
            rows,
        }
    }

    fn title(&self) -> String {
        let chart = self.chart;
        let seconds = chart.end.saturating_sub(chart.start) as f64 / 1e9;
        let tasks = match self.request.parts {
            ChartParts::Power => String::new(),
            _ => format!(
                ", {} of {} tasks",
                self.shown.count(),
                self.shown.active_count
            ),
        };
        let cpus = match self.cpus.len() {
            0 => String::new(),
            count => format!(", {}", counted(count as u64, "CPU")),
        };
        format!("Time chart of {seconds:.1} s{cpus}{tasks}")
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(damage) = &self.damage {
            notes.push(format!("Incomplete: {damage}"));
        }
        if !self.chart.losses.stretches().is_empty() {
            let note = "Records were lost: what is shown in the red stretches is doubtful";
            notes.push(note.to_owned());
        }
        if self.cpus.len() == MAX_CPUS && self.chart.cpus.len() > MAX_CPUS {
            let hidden = (self.chart.cpus.len() - MAX_CPUS) as u64;
            let (cpus, verb) = (counted(hidden, "CPU"), is_or_are(hidden));
            notes.push(format!("{cpus} {verb} not shown"));
        }
        notes
    }

    fn cpu_row(&self, cpu: u32) -> ChartRow {
        let nothing = CpuLane::default();
        let lane = self.chart.cpus.get(&cpu).unwrap_or(&nothing);
        let mut row = ChartRow {
            kind: RowKind::Cpu,
            label: format!("CPU {cpu}"),
            details: String::new(),
            weight: lane.busy,
            names: Vec::new(),
            boxes: Vec::new(),
            line: Vec::new(),
        };
        if self.request.parts != ChartParts::Tasks {
            draw_idle(lane, &mut row);
            row.line = self.frequencies(lane);
        }
        if self.request.parts != ChartParts::Power {
            self.draw_usage(lane, &mut row);
            let span = self.chart.end.saturating_sub(self.chart.start).max(1);
            let busy = 100.0 * lane.busy as f64 / span as f64;
            row.label = format!("CPU {cpu} ({busy:.0}% busy)");
        }
        row.details.clone_from(&row.label);
        if let Some(most) = lane.power.frequencies.iter().map(|step| step.khz).max() {
            row.details = format!("{}, up to {:.2} GHz", row.label, f64::from(most) / 1e6);
        }
        row
    }

    /// Draws the tasks that ran.
    fn draw_usage(&self, lane: &CpuLane, row: &mut ChartRow) {
        // The index in `row.names` of the name of each task, by the task's index in the chart.
        let mut name_of_task: BTreeMap<usize, u32> = BTreeMap::default();
        for piece in lane.usage.pieces() {
            let drawn = |low: u8, high: u8, paint: Paint, name: Option<u32>| ChartBox {
                from: piece.from,
                to: piece.to,
                low,
                high,
                paint,
                // Only boxes of merged runs have no name.
                is_merged: name.is_none(),
                name,
            };
            match &piece.content {
                PieceContent::One { state, data } => {
                    let task = data.get();
                    let name = *name_of_task.entry(task).or_insert_with(|| {
                        let task_lane = self.chart.tasks.get(task);
                        row.names.push(task_lane.map(task_name).unwrap_or_default());
                        u32::try_from(row.names.len() - 1).unwrap_or(u32::MAX)
                    });
                    let paint = match *state {
                        NORMAL_RUN => Paint::Task(color(row.names.get(name as usize))),
                        _ => Paint::Highlighted,
                    };
                    row.boxes.push(drawn(0, 100, paint, Some(name)));
                }
                PieceContent::Merged(sums) => {
                    let [normal, highlighted] = sums.nanos;
                    let whole = piece.to - piece.from;
                    let edge = share(normal, whole);
                    let top = edge.saturating_add(share(highlighted, whole)).min(100);
                    row.boxes.push(drawn(0, edge, Paint::Running, None));
                    row.boxes.push(drawn(edge, top, Paint::Highlighted, None));
                }
            }
        }
        row.boxes.retain(|item| item.low < item.high);
    }

    /// Returns the frequency changes of a CPU: the time in nanoseconds, and the new frequency in percent of the highest frequency
    /// of all CPUs, but at least [`MIN_FREQUENCY`].
    fn frequencies(&self, lane: &CpuLane) -> Vec<(u64, u8)> {
        let all = self.chart.cpus.values();
        let steps = all.flat_map(|cpu| &cpu.power.frequencies);
        let most = u64::from(steps.map(|step| step.khz).max().unwrap_or_default()).max(1);
        let heights = lane.power.frequencies.iter().map(|step| {
            let percent = (100 * u64::from(step.khz) / most).max(MIN_FREQUENCY);
            (step.time, u8::try_from(percent).unwrap_or(100))
        });
        heights.collect()
    }

    /// Returns the stretches with lost records. Those of the same CPU, or those without a recorded CPU, are merged if they are at
    /// most one grid cell apart: states shorter than a cell are merged, too.
    fn gaps(&self) -> Vec<ChartGap> {
        let rows: BTreeMap<u32, usize> = self.cpus.iter().copied().zip(0..).collect();
        let mut merged: Vec<LostStretch> = Vec::new();
        // The index in `merged` of the last stretch of each CPU.
        let mut last: BTreeMap<Option<u32>, usize> = BTreeMap::default();
        let cell = self.chart.grid.cell();
        for stretch in self.chart.losses.stretches() {
            let (from, to) = (
                stretch.from.max(self.chart.start),
                stretch.to.min(self.chart.end),
            );
            if from > to {
                continue;
            }
            let before = last
                .get(&stretch.cpu)
                .and_then(|index| merged.get_mut(*index));
            match before {
                Some(before) if from.saturating_sub(before.to) <= cell => {
                    before.to = to;
                    before.records = before.records.saturating_add(stretch.records);
                }
                _ => {
                    last.insert(stretch.cpu, merged.len());
                    merged.push(LostStretch {
                        from,
                        to,
                        ..*stretch
                    });
                }
            }
        }
        let gaps = merged.iter().map(|stretch| ChartGap {
            from: stretch.from,
            to: stretch.to,
            // `None`: all rows are marked, even if the CPU is known but not drawn.
            row: stretch.cpu.and_then(|cpu| rows.get(&cpu).copied()),
            name: {
                let (count, verb) = (
                    counted(stretch.records, "record"),
                    was_or_were(stretch.records),
                );
                match stretch.cpu {
                    Some(cpu) => format!("{count} of CPU {cpu} {verb} lost"),
                    None => format!("{count} {verb} lost"),
                }
            },
        });
        gaps.collect()
    }
}

/// Whether system calls are drawn: if there are any, but not with `-P`, and with `-T` only if there are no context switches.
pub(super) fn draws_calls(chart: &Timechart, parts: ChartParts) -> bool {
    let is_wanted = match parts {
        ChartParts::All => true,
        ChartParts::Power => false,
        ChartParts::Tasks => chart.counts.switches == 0,
    };
    is_wanted && chart.counts.call_events > 0
}

/// Draws idle states. Merged states are drawn from the top down: tasks are drawn into the same row from the bottom up.
fn draw_idle(lane: &CpuLane, row: &mut ChartRow) {
    for piece in lane.power.idle.pieces() {
        let whole = piece.to - piece.from;
        let mut high = 100_u8;
        let is_merged = matches!(piece.content, PieceContent::Merged(_));
        for (depth, nanos) in (0..IDLE_PAINTS).zip(piece.sums().nanos) {
            let low = high.saturating_sub(share(nanos, whole));
            if low < high {
                row.boxes.push(ChartBox {
                    from: piece.from,
                    to: piece.to,
                    low,
                    high,
                    paint: Paint::Idle(depth),
                    is_merged,
                    name: None,
                });
            }
            high = low;
        }
    }
}

/// Returns `part` in percent of `whole`; at least [`MIN_SHARE`], unless `part` is 0.
pub(super) fn share(part: u64, whole: u64) -> u8 {
    if part == 0 {
        return 0;
    }
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    let percent = u64::try_from(percent).unwrap_or(100);
    u8::try_from(percent.clamp(MIN_SHARE, 100)).unwrap_or(100)
}

/// Returns the name of a task with its thread id.
pub(super) fn task_name(lane: &TaskLane) -> String {
    let name = lane.names.last().map(|name| name_text(name));
    format!("{}:{}", name.unwrap_or_default(), lane.tid)
}

/// Chooses a colour by the name without the thread id: tasks of one name have one colour.
fn color(name: Option<&String>) -> u8 {
    let name = name.map_or("", |name| {
        name.rsplit_once(':').map_or(name, |(name, _)| name)
    });
    // FNV-1a.
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    ((hash >> 16) % u32::from(Paint::TASK_COLORS)) as u8
}

fn sort_by_topology(cpus: &mut [u32], analysis: &Analysis<'_>) -> Result<(), CliError> {
    let topology = analysis.metadata().features.cpu_topology();
    let places = topology.map(|topology| topology.cpus).unwrap_or_default();
    if places.is_empty() {
        let path = analysis.input.path.display();
        let message = format!("{path}: -t needs the topology of the CPUs, which is not recorded");
        return Err(CliError::message(255, message).hint("without -t CPUs are sorted by number"));
    }
    cpus.sort_by_key(|cpu| {
        let place = places.get(*cpu as usize);
        (place.map(|place| (place.socket, place.core)), *cpu)
    });
    Ok(())
}
