//! Waits as flame graphs: `--svg`.

use std::path::PathBuf;

use clap::ArgMatches;
use rperf_analysis::lock::{LockKey, LockRow, LockStack};
use rperf_flame::{Flame, FrameKind, Palette, Stacks, svg};
use rperf_replay::DsoKind;
use rperf_resolve::{Frame, Resolver};
use rperf_view::lock::{NamedRow, kind};

use super::details::{address_context, is_kernel_address};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::given_value;
use crate::cli::shared::flame_output::{DEFAULT_MIN_WIDTH, PictureFormat, write_picture};

/// The file of `--svg`.
pub(super) struct FlameFile(PathBuf);

/// A stack and its time.
pub(super) struct FlameStack {
    /// The name of the outermost frame, in brackets: not a function, but the kind of lock, or the holder's state (`--holders`).
    pub(super) root: String,
    /// The other frames, outermost first.
    pub(super) frames: Vec<(String, FrameKind)>,
    pub(super) nanos: u64,
}

impl FlameFile {
    /// Returns the file of `--svg`, if given.
    pub(super) fn given(matches: &ArgMatches) -> Option<Self> {
        let file = given_value::<String>(matches, "svg");
        file.map(|file| Self(PathBuf::from(file)))
    }

    /// Draws the rows of a table by caller: with `--svg`, other tables are refused.
    ///
    /// # Errors
    ///
    /// Those of [`FlameFile::write`].
    pub(super) fn write_rows(
        &self,
        rows: &[NamedRow],
        resolver: &Resolver<'_>,
        context: &Context,
    ) -> Result<(), CliError> {
        let namer = StackNamer::new(resolver);
        let stacks = rows.iter().map(|named| row_stack(&named.row, &namer));
        self.write(stacks, "Waits for Locks Flame Graph", context)
    }

    /// Draws the stacks.
    ///
    /// # Errors
    ///
    /// No stack has a time above 0, or the file cannot be written.
    pub(super) fn write(
        &self,
        flame_stacks: impl Iterator<Item = FlameStack>,
        title: &str,
        context: &Context,
    ) -> Result<(), CliError> {
        let mut stacks = Stacks::default();
        for stack in flame_stacks.filter(|stack| stack.nanos > 0) {
            // The root is no function; the kind only selects its color.
            let mut labels = vec![stacks.label(&stack.root, FrameKind::User)];
            for (name, kind) in &stack.frames {
                labels.push(stacks.label(name, *kind));
            }
            stacks.add(&labels, stack.nanos);
        }
        if stacks.is_empty() {
            return Err(CliError::message(
                255,
                "--svg: no wait has ended, so there is nothing to draw",
            )
            .hint("record for longer, or select other locks"));
        }
        let options = svg::SvgOptions {
            title: title.to_owned(),
            subtitle: None,
            width: None,
            min_width: DEFAULT_MIN_WIDTH,
            inverted: false,
            palette: Palette::default(),
            unit: "ns".to_owned(),
        };
        let from_innermost = false;
        let flame = Flame::new(&stacks, from_innermost);
        write_picture(&flame, PictureFormat::Svg, &options, Some(&self.0), context)
    }
}

/// Names the frames of stacks of the kernel and of programs.
pub(super) struct StackNamer<'n, 'r> {
    pub(super) resolver: &'n Resolver<'r>,
}

impl<'n, 'r> StackNamer<'n, 'r> {
    pub(super) fn new(resolver: &'n Resolver<'r>) -> Self {
        Self { resolver }
    }

    /// Returns the frames, innermost first.
    pub(super) fn frames(&self, stack: &LockStack) -> Vec<Frame> {
        let frames = stack.frames.iter().map(|ip| {
            // Process 0, the idle task, has no user mappings: user frames without a process get no object.
            let process = stack.process.unwrap_or_default();
            let (at, mode) = address_context((!is_kernel_address(*ip)).then_some(process));
            self.resolver.locate(at, mode, *ip)
        });
        frames.collect()
    }

    /// Returns the names and kinds of the frames, outermost first. A stack without a process sums the waits of all processes: its
    /// user frames cannot be named and are left out.
    pub(super) fn named(&self, stack: &LockStack) -> Vec<(String, FrameKind)> {
        let has_process = stack.process.is_some();
        let mut frames = self.frames(stack);
        frames.retain(|frame| has_process || is_kernel_address(frame.ip));
        let frames = frames.iter().rev();
        frames
            .map(|frame| (self.name(frame), self.frame_kind(frame)))
            .collect()
    }

    /// Returns the function of a frame; if unknown, the object in brackets, or `[unknown]`.
    pub(super) fn name(&self, frame: &Frame) -> String {
        let dso = frame.dso.map(|dso| self.resolver.world().dso(dso));
        match (frame.symbol, dso) {
            (Some(symbol), _) => self.resolver.symbol_name(symbol).to_owned(),
            (None, Some(dso)) if dso.short_name.starts_with('[') => dso.short_name.clone(),
            (None, Some(dso)) => format!("[{}]", dso.short_name),
            (None, None) => "[unknown]".to_owned(),
        }
    }

    fn frame_kind(&self, frame: &Frame) -> FrameKind {
        let dso = frame.dso.map(|dso| &self.resolver.world().dso(dso).kind);
        match dso {
            _ if is_kernel_address(frame.ip) => FrameKind::Kernel,
            Some(DsoKind::PerfMap(_)) => FrameKind::Jit,
            _ => FrameKind::User,
        }
    }
}

/// Returns the caller's stack and the total wait of a row; the root frame is the kind of lock.
fn row_stack(row: &LockRow, namer: &StackNamer<'_, '_>) -> FlameStack {
    let frames = match &row.key {
        LockKey::Caller(stack) => namer.named(stack),
        // Not with `--svg`, which draws only tables by caller.
        _ => Vec::new(),
    };
    FlameStack {
        root: format!("[{}]", kind(row.flags)),
        frames,
        nanos: row.total,
    }
}
