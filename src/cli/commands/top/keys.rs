//! What keys mean on the screen of text, and what is asked after some of them.

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// Another number is to be given for this.
    Ask(Asked),
    /// The next event's rows.
    NextEvent,
    /// Kernel symbols are hidden, or shown again.
    HideKernel,
    /// User symbols.
    HideUser,
    /// Rows again instead of a function.
    StopCode,
    /// Older samples are forgotten, or fade again.
    Zero,
    /// The end.
    Quit,
}

/// A number that can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Seconds between refreshes.
    Delay,
    /// Lines.
    Entries,
    /// Samples that a line needs.
    Count,
    /// The share that an annotated instruction needs, in percent.
    Percent,
    /// The function to annotate.
    Symbol,
}

impl Asked {
    /// perf's words.
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

impl Key {
    /// What `byte` means, with so many events.
    pub(super) fn of(byte: u8, events: usize) -> Option<Self> {
        Some(match byte {
            b'd' => Self::Ask(Asked::Delay),
            b'e' => Self::Ask(Asked::Entries),
            b'f' => Self::Ask(Asked::Count),
            b'F' => Self::Ask(Asked::Percent),
            b's' => Self::Ask(Asked::Symbol),
            b'S' => Self::StopCode,
            b'E' if events > 1 => Self::NextEvent,
            b'K' => Self::HideKernel,
            b'U' => Self::HideUser,
            b'z' => Self::Zero,
            b'q' | b'Q' => Self::Quit,
            _ => return None,
        })
    }
}

/// What the menu tells of the settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Menu<'a> {
    pub(super) delay: f64,
    pub(super) entries: usize,
    /// The event whose rows are shown, where there are several.
    pub(super) event: Option<&'a str>,
    pub(super) count: u64,
    /// The share that an annotated instruction needs.
    pub(super) percent: u8,
    /// The function that is shown.
    pub(super) symbol: Option<&'a str>,
    pub(super) hides_kernel: bool,
    pub(super) hides_user: bool,
    pub(super) zero: bool,
    pub(super) own_cost: f64,
}

impl Menu<'_> {
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
             \tOwn share of a CPU: {:.1}%\n\
             \nEnter selection, or unmapped key to continue: ",
            self.delay,
            self.entries,
            self.count,
            self.percent,
            self.symbol.unwrap_or("NULL"),
            yes(self.hides_kernel),
            yes(self.hides_user),
            u8::from(self.zero),
            self.own_cost
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_menu_has_perfs_lines() {
        let mut menu = Menu {
            delay: 1.0,
            entries: 20,
            event: None,
            count: 5,
            percent: 5,
            symbol: None,
            hides_kernel: false,
            hides_user: true,
            zero: false,
            own_cost: 0.44,
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
            "\tOwn share of a CPU: 0.4%",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}");
        }
        assert!(!text.contains("[E]"));
        menu.event = Some("cs");
        assert!(
            menu.text()
                .contains("\t[E]     active event counter.              \t(cs)\n")
        );
    }

    #[test]
    fn keys_mean_what_they_mean_in_perf() {
        assert_eq!(Key::of(b'd', 1), Some(Key::Ask(Asked::Delay)));
        assert_eq!(
            [Key::of(b'E', 1), Key::of(b'E', 2)],
            [None, Some(Key::NextEvent)]
        );
        assert_eq!(Key::of(b'Q', 1), Some(Key::Quit));
        assert_eq!(Key::of(b'x', 1), None);
    }
}
