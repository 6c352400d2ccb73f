//! `-g`, `--call-graph` and the configuration `call-graph.*`: how callchains are recorded.

use clap::ArgMatches;
use rperf_events::{CallGraph, StackSize, USER_REGISTERS};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::{flag, given_value, number};

/// The requested callchains; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CallchainOptions {
    pub(crate) mode: CallGraph,
    /// The maximum number of frames, 0 for the system's limit.
    pub(crate) max_stack: u16,
}

impl CallchainOptions {
    /// Parses the options. `-g` alone uses the mode of the command's setting `command_setting`, otherwise of the setting
    /// `call-graph.record-mode`, otherwise `fp`. `--unwind live` copies stacks unless `--call-graph` gives a mode.
    pub(crate) fn new(
        matches: &ArgMatches,
        context: &Context,
        command_setting: &'static str,
    ) -> Result<Self, CliError> {
        if let Some(words) = matches.get_one::<String>("call-graph") {
            return Self::parse(words);
        }
        if given_value(matches, "unwind").is_some_and(|when: &String| when == "live") {
            return Self::parse("dwarf");
        }
        if flag(matches, "g") != Some(true) {
            return Ok(Self::default());
        }
        let setting = |name: &str| context.config.text(name);
        let in_setting = |name: &'static str| {
            move |error: CliError| error.detail(format!("(from the setting {name})"))
        };
        let configured = [command_setting, "call-graph.record-mode"].into_iter();
        let mut configured = configured.filter_map(|name| Some((name, setting(name)?)));
        // `fp` is always valid, so the name beside it is not used.
        let (name, words) = configured.next().unwrap_or((command_setting, "fp"));
        let mut chains = Self::parse(words).map_err(in_setting(name))?;
        if let CallGraph::Dwarf {
            stack_size,
            with_data,
        } = &mut chains.mode
        {
            // As in perf: only a mode given as an option adds data addresses.
            *with_data = false;
            if let Some(size) = setting("call-graph.dump-size")
                && !words.contains(',')
            {
                *stack_size = parse_size(size).map_err(in_setting("call-graph.dump-size"))?;
            }
        }
        Ok(chains)
    }

    fn parse(words: &str) -> Result<Self, CliError> {
        let (mode, rest) = match words.split_once(',') {
            Some((mode, rest)) => (mode, Some(rest).filter(|rest| !rest.is_empty())),
            None => (words, None),
        };
        match mode {
            "fp" => rest.map_or(Ok(Self::FP), Self::parse_frames),
            "dwarf" if USER_REGISTERS.is_none() => Err(CliError::usage(format!(
                "--call-graph dwarf is not supported yet on {}: use --call-graph fp",
                std::env::consts::ARCH
            ))),
            "dwarf" => Ok(Self {
                mode: CallGraph::Dwarf {
                    stack_size: rest.map_or(Ok(StackSize::default()), parse_size)?,
                    with_data: true,
                },
                max_stack: 0,
            }),
            "lbr" => Ok(Self {
                mode: CallGraph::BranchRecords,
                max_stack: 0,
            }),
            "no" => Ok(Self::default()),
            _ => Err(CliError::usage(format!(
                "callchain: Unknown --call-graph option value: {words}"
            ))
            .hint("use fp, lbr, no, or dwarf with the size of stack copies: dwarf,8192")),
        }
    }
}

impl CallchainOptions {
    const FP: Self = Self {
        mode: CallGraph::FramePointers,
        max_stack: 0,
    };

    /// Parses the text after `fp,`: a number of frames, `defer`, or both.
    fn parse_frames(words: &str) -> Result<Self, CliError> {
        let mut chains = Self::FP;
        for word in words.split(',') {
            match word {
                "defer" => chains.mode = CallGraph::Deferred,
                word => chains.max_stack = parse_max_stack(word)?,
            }
        }
        Ok(chains)
    }
}

fn parse_max_stack(word: &str) -> Result<u16, CliError> {
    word.parse().map_err(|_| {
        CliError::usage(format!(
            "'{word}' is not a number of frames: use --call-graph fp,N or fp,defer"
        ))
    })
}

fn parse_size(word: &str) -> Result<StackSize, CliError> {
    let size = number(word).ok().and_then(StackSize::new);
    size.ok_or_else(|| {
        CliError::usage(format!(
            "callchain: Incorrect stack dump size (max {}): {word}",
            StackSize::MAX.bytes()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dwarf(bytes: u64) -> Option<CallchainOptions> {
        Some(CallchainOptions {
            mode: CallGraph::Dwarf {
                stack_size: StackSize::new(bytes)?,
                with_data: true,
            },
            max_stack: 0,
        })
    }

    #[test]
    fn fp_accepts_a_number_of_frames_and_dwarf_a_size() {
        let parse = |words| CallchainOptions::parse(words).ok();
        let frames = |max_stack| {
            let mode = CallGraph::FramePointers;
            Some(CallchainOptions { mode, max_stack })
        };
        assert_eq!([parse("fp"), parse("fp,16")], [frames(0), frames(16)]);
        let deferred = |max_stack| {
            let mode = CallGraph::Deferred;
            Some(CallchainOptions { mode, max_stack })
        };
        assert_eq!(
            [
                parse("fp,defer"),
                parse("fp,16,defer"),
                parse("fp,defer,16")
            ],
            [deferred(0), deferred(16), deferred(16)]
        );
        assert_eq!(
            [parse("dwarf"), parse("dwarf,")],
            [dwarf(8192), dwarf(8192)]
        );
        // Sizes are rounded up to a multiple of 8.
        assert_eq!(
            [parse("dwarf,100"), parse("dwarf,0x1000")],
            [dwarf(104), dwarf(4096)]
        );
    }

    #[test]
    fn invalid_modes_and_sizes_are_refused() {
        for (words, message) in [
            ("foo", "callchain: Unknown --call-graph option value: foo"),
            ("dw", "callchain: Unknown --call-graph option value: dw"),
            (
                "dwarf,0",
                "callchain: Incorrect stack dump size (max 65528): 0",
            ),
            (
                "dwarf,65535",
                "callchain: Incorrect stack dump size (max 65528): 65535",
            ),
            (
                "dwarf,8k",
                "callchain: Incorrect stack dump size (max 65528): 8k",
            ),
            (
                "dwarf,-8",
                "callchain: Incorrect stack dump size (max 65528): -8",
            ),
            ("fp,x", "'x' is not a number of frames"),
            ("fp,defer,", "'' is not a number of frames"),
            ("fp,deferred", "'deferred' is not a number of frames"),
        ] {
            let text = CallchainOptions::parse(words).map_err(|error| error.text());
            assert!(text.is_err_and(|text| text.starts_with(message)), "{words}");
        }
    }
}
