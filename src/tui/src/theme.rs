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
    has_colors: bool,
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
            has_colors: false,
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
            has_colors: true,
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

    /// The look of a frame of a flame view: a name has the same everywhere. Without colours neighbours differ.
    #[must_use]
    pub fn flame(&self, name: &str, number: usize) -> Style {
        const WARM: [Color; 4] = [
            Color::LightRed,
            Color::LightYellow,
            Color::LightMagenta,
            Color::LightGreen,
        ];
        let black = Style::new().fg(Color::Black);
        if !self.has_colors {
            return match number % 2 {
                0 => Style::new(),
                _ => Style::new().add_modifier(Modifier::UNDERLINED),
            };
        }
        let hash = name.bytes().fold(0_usize, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(usize::from(byte))
        });
        WARM.get(hash % WARM.len())
            .map_or(black, |color| black.bg(*color))
    }
}
