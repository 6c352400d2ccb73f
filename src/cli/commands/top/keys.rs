//! Keys of the text screen, and prompts.

/// The action of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyAction {
    /// Prompts for a new value.
    Ask(PromptedValue),
    /// Shows the rows of the next event or group.
    NextEvent,
    /// Hides kernel symbols, or shows them again.
    HideKernel,
    /// Hides user symbols, or shows them again.
    HideUser,
    /// Shows rows instead of an annotated function.
    StopAnnotation,
    /// Drops the counts of older intervals, or lets them decay again.
    Zero,
    /// Quits.
    Quit,
}

/// A value that is prompted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptedValue {
    /// Seconds between refreshes.
    Delay,
    /// Maximum number of rows.
    Entries,
    /// Minimum number of samples of a row.
    Count,
    /// Minimum percentage of an annotated instruction.
    Percent,
    /// The function to annotate.
    Symbol,
}

impl PromptedValue {
    /// perf's prompt.
    pub(super) fn prompt(self) -> &'static str {
        match self {
            Self::Delay => "Enter display delay",
            Self::Entries => "Enter display entries (lines)",
            Self::Count => "Enter display event count filter",
            Self::Percent => "Enter details display event filter (percent)",
            Self::Symbol => "Enter details symbol",
        }
    }
}

impl KeyAction {
    /// The action of the key `byte`. `tables` is the number of tables of rows: each event or group has one.
    pub(super) fn of(byte: u8, tables: usize) -> Option<Self> {
        Some(match byte {
            b'd' => Self::Ask(PromptedValue::Delay),
            b'e' => Self::Ask(PromptedValue::Entries),
            b'f' => Self::Ask(PromptedValue::Count),
            b'F' => Self::Ask(PromptedValue::Percent),
            b's' => Self::Ask(PromptedValue::Symbol),
            b'S' => Self::StopAnnotation,
            b'E' if tables > 1 => Self::NextEvent,
            b'K' => Self::HideKernel,
            b'U' => Self::HideUser,
            b'z' => Self::Zero,
            b'q' | b'Q' => Self::Quit,
            _ => return None,
        })
    }
}

/// The settings shown in the menu.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KeyMenu<'a> {
    /// Seconds between refreshes.
    pub(super) delay: f64,
    /// The maximum number of rows shown.
    pub(super) entries: usize,
    /// The event or group whose rows are shown, if there are several.
    pub(super) event: Option<&'a str>,
    /// Minimum number of samples of a row.
    pub(super) min_samples: u64,
    /// Minimum percentage of an annotated instruction.
    pub(super) min_percent: u8,
    /// The annotated function.
    pub(super) symbol: Option<&'a str>,
    pub(super) hides_kernel: bool,
    pub(super) hides_user: bool,
    pub(super) zero: bool,
    /// CPU time that `top` uses, in percent of one CPU.
    pub(super) own_cpu: f64,
}

impl KeyMenu<'_> {
    /// The menu, in perf's layout.
    pub(super) fn text(&self) -> String {
        let yes = |on| if on { "yes" } else { "no" };
        let event = self.event.map_or(String::new(), |event| {
            format!("\t[E]     active event counter.              \t({event})\n")
        });
        format!(
            "\nMapped keys:\n\
             \t[d]     display refresh delay.             \t({})\n\
             \t[e]     display entries (lines).           \t({})\n\
             {event}\
             \t[f]     profile display filter (count).    \t({})\n\
             \t[F]     annotate display filter (percent). \t({}%)\n\
             \t[s]     annotate symbol.                   \t({})\n\
             \t[S]     stop annotation.\n\
             \t[K]     hide kernel symbols.             \t({})\n\
             \t[U]     hide user symbols.               \t({})\n\
             \t[z]     toggle sample zeroing.             \t({})\n\
             \t[qQ]    quit.\n\
             \tCPU usage of top: {:.1}%\n\
             \nEnter selection, or unmapped key to continue: ",
            self.delay,
            self.entries,
            self.min_samples,
            self.min_percent,
            self.symbol.unwrap_or("NULL"),
            yes(self.hides_kernel),
            yes(self.hides_user),
            u8::from(self.zero),
            self.own_cpu
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_menu_has_perfs_lines() {
        let mut menu = KeyMenu {
            delay: 1.0,
            entries: 20,
            event: None,
            min_samples: 5,
            min_percent: 5,
            symbol: None,
            hides_kernel: false,
            hides_user: true,
            zero: false,
            own_cpu: 0.44,
        };
        let text = menu.text();
        for line in [
            "Mapped keys:",
            "\t[d]     display refresh delay.             \t(1)",
            "\t[e]     display entries (lines).           \t(20)",
            "\t[f]     profile display filter (count).    \t(5)",
            "\t[F]     annotate display filter (percent). \t(5%)",
            "\t[s]     annotate symbol.                   \t(NULL)",
            "\t[S]     stop annotation.",
            "\t[K]     hide kernel symbols.             \t(no)",
            "\t[U]     hide user symbols.               \t(yes)",
            "\t[z]     toggle sample zeroing.             \t(0)",
            "\t[qQ]    quit.",
            "\tCPU usage of top: 0.4%",
        ] {
            assert!(text.lines().any(|menu_line| menu_line == line), "{line}");
        }
        assert!(!text.contains("[E]"));
        menu.event = Some("cs");
        assert!(
            menu.text()
                .contains("\t[E]     active event counter.              \t(cs)\n")
        );
    }

    #[test]
    fn keys_match_perf() {
        assert_eq!(
            KeyAction::of(b'd', 1),
            Some(KeyAction::Ask(PromptedValue::Delay))
        );
        assert_eq!(
            [KeyAction::of(b'E', 1), KeyAction::of(b'E', 2)],
            [None, Some(KeyAction::NextEvent)]
        );
        assert_eq!(KeyAction::of(b'Q', 1), Some(KeyAction::Quit));
        assert_eq!(KeyAction::of(b'x', 1), None);
    }
}
