//! Colours: the sixteen of every terminal, in combinations readable on dark and light backgrounds.

use ratatui::style::{Color, Modifier, Style};

/// The styles of the parts of a screen. Without colours, some parts are bold, reversed or underlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Normal text.
    pub normal: Style,
    /// The first and the last line.
    pub bar: Style,
    /// Column headings.
    pub heading: Style,
    /// The row of the cursor, and the input field of a prompt.
    pub selected: Style,
    /// Popups.
    pub popup: Style,
    /// Secondary text: separators, line numbers, notes on missing source.
    pub muted: Style,
    /// The labels of instructions: addresses or offsets.
    pub address: Style,
    /// The signs and arrows of jumps, calls and returns.
    pub jump: Style,
    /// In the split view of annotated code: the separator before the instructions of the cursor's source line.
    pub cursor_line_border: Style,
    hot: Style,
    warm: Style,
    has_colors: bool,
}

/// The heat of a percentage, with Linux perf's thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PercentHeat {
    /// 5 % or more.
    Hot,
    /// More than 0.5 %.
    Warm,
    /// The rest.
    Cold,
}

impl PercentHeat {
    /// Returns the heat of a percentage.
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
    /// Creates the theme, with or without colours.
    #[must_use]
    pub fn new(has_colors: bool) -> Self {
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
            cursor_line_border: plain.add_modifier(Modifier::UNDERLINED),
            hot: bold,
            warm: plain,
            has_colors: false,
        };
        if !has_colors {
            return monochrome;
        }
        // The terminal's defaults are unknown: filled parts set both colours, and text has colours that show on any background.
        Self {
            bar: plain.fg(Color::White).bg(Color::Blue),
            selected: plain.fg(Color::Black).bg(Color::Yellow),
            popup: plain.fg(Color::Black).bg(Color::Gray),
            address: plain.fg(Color::Magenta),
            jump: plain.fg(Color::Blue),
            cursor_line_border: plain.fg(Color::Black).bg(Color::Cyan),
            hot: plain.fg(Color::Red),
            warm: plain.fg(Color::Green),
            has_colors: true,
            ..monochrome
        }
    }

    /// Returns the style of a heat.
    #[must_use]
    pub fn heat(&self, heat: PercentHeat) -> Style {
        match heat {
            PercentHeat::Hot => self.hot,
            PercentHeat::Warm => self.warm,
            PercentHeat::Cold => self.normal,
        }
    }

    /// Returns the style of a frame in the flame view. With colours, it depends only on the function's name; without, on whether
    /// `number`, the frame's index in the view, is even.
    #[must_use]
    pub fn flame(&self, name: &str, number: usize) -> Style {
        const FRAME_COLORS: [Color; 4] = [
            Color::LightRed,
            Color::LightYellow,
            Color::LightMagenta,
            Color::LightGreen,
        ];
        if !self.has_colors {
            return match number % 2 {
                0 => Style::new(),
                _ => Style::new().add_modifier(Modifier::UNDERLINED),
            };
        }
        let black = Style::new().fg(Color::Black);
        let hash = name.bytes().fold(0_usize, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(usize::from(byte))
        });
        FRAME_COLORS
            .get(hash % FRAME_COLORS.len())
            .map_or(black, |color| black.bg(*color))
    }
}
