//! `sched off-cpu`: the code in which tasks leave the CPU, the reasons, the times, and the wakers.

mod args;

use std::path::Path;

use clap::ArgMatches;
use rperf_analysis::ObserverPass;
use rperf_analysis::sched::off_cpu::{
    FrameCode, NamedSwitchStacks, OffCpu, OffCpuTable, StackPrepare,
};
use rperf_flame::{Flame, FrameKind, Palette, Stacks, svg};
use rperf_view::sched::off_cpu::{OffCpuView, state_name};
use rperf_wire::SampleType;

pub(in crate::cli::commands) use self::args::command;
use self::args::{OffCpuOutput, OffCpuRequest};
use super::recording::{SchedRecording, conclude, losses};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::findings::report_symbol_problems;
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::flame_output::{
    DEFAULT_MIN_WIDTH, PictureFormat, write_picture, write_stacks,
};
use crate::cli::stack_folding::{
    can_complete_callchains, stack_copy_size, stack_options, warn_of_truncated,
};
use crate::cli::symbol_options::SymbolSources;

/// Prints tables and stacks as text or JSON, or writes folded stacks or a flame graph.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let request = OffCpuRequest::new(matches)?;
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let recording = SchedRecording::new(&analysis)?;
    let mut events = data.events().iter();
    let has_stacks = events.any(|event| event.attr.sample_type.contains(SampleType::CALLCHAIN));
    if !has_stacks {
        context.note("Samples do not have callchains.");
        context.note("hint: record with 'sched record -g'");
    }
    let resolver = analysis.resolver(&symbols);
    let unwound_frames = can_complete_callchains(data.events()).then_some(request.max_stack);
    let unwinding = stack_options(data.metadata(), unwound_frames);
    let prepare = StackPrepare::new(data.metadata(), &resolver, unwinding, request.max_stack)?;
    let mut off_cpu = OffCpu::new(request.options.clone());
    // `with_tasks` also selects FORK, EXIT and COMM records.
    let pass = ObserverPass::new(&recording.layouts, prepare).with_tasks();
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut off_cpu)?;
    let table = off_cpu.finish();
    let stacks = NamedSwitchStacks::new(&table, &resolver);
    analysis.end_progress();
    write(&request, &table, &stacks, &analysis)?;
    if has_stacks {
        report_symbol_problems(context, &resolver, context.verbosity(matches) > 0);
        let summary = pass.preparation().user_stacks().summary();
        warn_of_truncated(context, &summary, stack_copy_size(data.events()));
    }
    conclude(&analysis, delivered, &table.losses, matches)
}

fn write(
    request: &OffCpuRequest,
    table: &OffCpuTable,
    stacks: &NamedSwitchStacks,
    analysis: &Analysis<'_>,
) -> Result<(), CliError> {
    let context = analysis.context;
    let output = request.path.as_deref();
    let view = OffCpuView {
        table,
        stacks,
        max_rows: request.max_rows,
        frames: request.shown_frames,
    };
    match request.output {
        OffCpuOutput::Text => {
            context.paginate("sched")?;
            view.write_text(&mut context.stdout())?;
        }
        OffCpuOutput::Json => {
            let lost = losses(analysis).lost;
            view.write_json(&mut context.stdout(), lost)?;
        }
        OffCpuOutput::Folded => {
            // Unlike 'flamegraph', this command has no option --marks.
            let marks = false;
            write_stacks(&flame_stacks(table, stacks), marks, output, context)?;
        }
        OffCpuOutput::Picture(format) => {
            draw(&flame_stacks(table, stacks), format, request, analysis)?;
        }
    }
    Ok(())
}

fn draw(
    stacks: &Stacks,
    format: PictureFormat,
    request: &OffCpuRequest,
    analysis: &Analysis<'_>,
) -> Result<(), CliError> {
    if stacks.is_empty() {
        let path = analysis.input.path.display();
        let message = format!("{path}: no wait ends in the recording");
        return Err(CliError::message(255, message)
            .hint("record for longer, or select other tasks with -p or -t"));
    }
    let title = request.title.clone();
    let options = svg::SvgOptions {
        title: title.unwrap_or_else(|| "Off-CPU Time Flame Graph".to_owned()),
        subtitle: None,
        width: None,
        min_width: DEFAULT_MIN_WIDTH,
        inverted: false,
        palette: Palette::default(),
        unit: "ns".to_owned(),
    };
    let reverse = false;
    let flame = Flame::new(stacks, reverse);
    let output: Option<&Path> = request.path.as_deref();
    write_picture(&flame, format, &options, output, analysis.context)
}

/// Returns the rows as stacks of a flame graph. From the root, each has the task, its state, and its stack from the outermost
/// frame to the innermost. For its waker, the waker of that waker, and so on, there follow a frame `--`, the waker's stack from
/// the innermost frame to the outermost, and the waker's name.
fn flame_stacks(table: &OffCpuTable, named: &NamedSwitchStacks) -> Stacks {
    let mut stacks = Stacks::default();
    let mut frames = Vec::new();
    for row in &table.rows {
        // Names and states are not code: `User` is the kind without a mark (a suffix such as `_[k]`).
        let label = |stacks: &mut Stacks, name: &str| stacks.label(name, FrameKind::User);
        // Underscores for blanks, as in stackcollapse-perf.pl.
        let comm = |comm: &[u8]| String::from_utf8_lossy(comm).replace(' ', "_");
        frames.clear();
        frames.push(label(&mut stacks, &comm(&row.comm)));
        let state = format!("[{}]", state_name(row.state));
        frames.push(label(&mut stacks, &state));
        for frame in named.frames(row.stack).rev() {
            frames.push(stacks.label(&frame.name, kind(frame.code)));
        }
        for waker in &row.wakers {
            frames.push(label(&mut stacks, "--"));
            for frame in named.frames(waker.stack) {
                frames.push(stacks.label(&frame.name, kind(frame.code)));
            }
            let name = waker.comm.as_deref().map(comm);
            let name = name.as_deref().unwrap_or("[interrupt]");
            frames.push(label(&mut stacks, name));
        }
        stacks.add(&frames, row.time.nanos);
    }
    stacks
}

fn kind(code: FrameCode) -> FrameKind {
    match code {
        FrameCode::User => FrameKind::User,
        FrameCode::Kernel => FrameKind::Kernel,
        FrameCode::Jit => FrameKind::Jit,
    }
}
