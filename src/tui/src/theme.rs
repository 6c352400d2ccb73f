//! Colours: the sixteen that every terminal has, in pairs that can be read on dark and on light ones.

use ratatui::style::{Color, Modifier, Style};

/// The look of every part. Without colours, bold and reversed text tells parts apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Text like any other.
    pub normal: Style,
    /// The first and the last line.
    pub bar: Style,
    /// Titles of columns.
    pub heading: Style,
    /// The row of the cursor.
    pub selected: Style,
    /// Popups.
    pub popup: Style,
    /// What is said beside the data: marks, hints.
    pub muted: Style,
    /// Addresses.
    pub address: Style,
    /// Jumps.
    pub jump: Style,
    /// What was searched for.
    pub found: Style,
    hot: Style,
    warm: Style,
}

/// How hot a share is, as Linux perf sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heat {
    /// 5 % and more.
    Hot,
    /// More than 0.5 %.
    Warm,
    /// The rest.
    Cold,
}

impl Heat {
    /// Of a share in percent.
    #[must_use]
    pub fn of(percent: f64) -> Self {
        match percent {
            percent if percent >= 5.0 => Self::Hot,
            percent if percent > 0.5 => Self::Warm,
            _ => Self::Cold,
        }
    }
}

impl Theme {
    /// The theme of a terminal, with or without colours.
    #[must_use]
    pub fn new(colors: bool) -> Self {
        let plain = Style::new();
        let reversed = plain.add_modifier(Modifier::REVERSED);
        let bold = plain.add_modifier(Modifier::BOLD);
        let monochrome = Self {
            normal: plain,
            bar: reversed,
            heading: bold,
            selected: reversed,
            popup: plain,
            muted: plain,
            address: plain,
            jump: bold,
            found: plain.add_modifier(Modifier::UNDERLINED),
            hot: bold,
            warm: plain,
        };
        if !colors {
            return monochrome;
        }
        // Both sides of a pair are given where one is: what a terminal shows by default is not known.
        Self {
            bar: plain.fg(Color::White).bg(Color::Blue),
            selected: plain.fg(Color::Black).bg(Color::Yellow),
            popup: plain.fg(Color::Black).bg(Color::Gray),
            address: plain.fg(Color::Magenta),
            jump: plain.fg(Color::Blue),
            found: plain.fg(Color::Black).bg(Color::Cyan),
            hot: plain.fg(Color::Red),
            warm: plain.fg(Color::Green),
            ..monochrome
        }
    }

    /// The look of a share.
    #[must_use]
    pub fn heat(&self, heat: Heat) -> Style {
        match heat {
            Heat::Hot => self.hot,
            Heat::Warm => self.warm,
            Heat::Cold => self.normal,
        }
    }
}
