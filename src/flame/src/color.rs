//! Colours of frames.

use crate::kind::FrameKind;

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rgb(pub(crate) u8, pub(crate) u8, pub(crate) u8);

/// Colour scheme of frames. Frames of the same name and kind always have the same colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Palette {
    /// Warm colours.
    #[default]
    Hot,
    /// By type of code: kernel orange, inlined cyan, JIT green, names with `::` (C++, Rust) yellow, the rest red.
    Kind,
    /// Java with perf-PID.map: compiled green, inlined cyan, C++ yellow, kernel orange, the rest red.
    Java,
    /// JavaScript: its files green, its builtins and inlined cyan, C++ yellow, kernel orange, the rest red.
    Js,
    /// Perl: its code green, C++ yellow, kernel orange, the rest red.
    Perl,
    /// Greens, for memory.
    Mem,
    /// Blues, for input and output.
    Io,
    /// A single hue.
    Hue(Hue),
}

/// A range of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hue {
    /// Red.
    Red,
    /// Orange.
    Orange,
    /// Yellow.
    Yellow,
    /// Green.
    Green,
    /// Cyan.
    Aqua,
    /// Blue.
    Blue,
    /// Purple.
    Purple,
}

/// Palettes by name. `aqua` and `blue-green` are the same palette.
pub const PALETTES: &[(&str, Palette)] = &[
    ("hot", Palette::Hot),
    ("kind", Palette::Kind),
    ("java", Palette::Java),
    ("js", Palette::Js),
    ("perl", Palette::Perl),
    ("mem", Palette::Mem),
    ("io", Palette::Io),
    ("red", Palette::Hue(Hue::Red)),
    ("orange", Palette::Hue(Hue::Orange)),
    ("yellow", Palette::Hue(Hue::Yellow)),
    ("green", Palette::Hue(Hue::Green)),
    ("aqua", Palette::Hue(Hue::Aqua)),
    ("blue", Palette::Hue(Hue::Blue)),
    ("blue-green", Palette::Hue(Hue::Aqua)),
    ("purple", Palette::Hue(Hue::Purple)),
];

impl Palette {
    /// The palette with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = PALETTES.iter().find(|(known, _)| *known == name);
        found.map(|(_, palette)| *palette)
    }

    /// The colour of a frame.
    pub(crate) fn color(self, name: &str, kind: FrameKind) -> Rgb {
        let shade = shade(name);
        let hue = match self {
            Self::Hot => return hot(name),
            Self::Mem => return Rgb(mix(0, 120, shade), mix(190, 240, shade), mix(0, 120, shade)),
            Self::Io => {
                return Rgb(
                    mix(80, 140, shade),
                    mix(80, 140, shade),
                    mix(190, 245, shade),
                );
            }
            Self::Hue(hue) => hue,
            Self::Kind => match kind {
                FrameKind::Kernel => Hue::Orange,
                FrameKind::Inlined => Hue::Aqua,
                FrameKind::Jit => Hue::Green,
                FrameKind::User if name.contains("::") => Hue::Yellow,
                FrameKind::User => Hue::Red,
            },
            Self::Java => java(name, kind),
            Self::Js => js(name, kind),
            Self::Perl => perl(name, kind),
        };
        hue.color(shade)
    }
}

fn java(name: &str, kind: FrameKind) -> Hue {
    // Java functions are named `Lorg/example/Thing;::run`, `org/example/Thing::run` or `org.example.Thing.run`; names of
    // generated classes contain `$$`.
    let is_class = |name: &str| name.contains('/') || name.contains("$$") || is_dotted(name);
    match kind {
        FrameKind::Kernel => Hue::Orange,
        FrameKind::Inlined => Hue::Aqua,
        FrameKind::Jit => Hue::Green,
        FrameKind::User if is_class(name) => Hue::Green,
        FrameKind::User if name.contains("::") => Hue::Yellow,
        FrameKind::User => Hue::Red,
    }
}

/// Whether a name has at least three parts, separated by dots, that all begin with a letter or `<`: `java.lang.Thread.run`, but
/// not `libc.so.6`.
fn is_dotted(name: &str) -> bool {
    let mut parts = name.split('.');
    parts.clone().count() >= 3
        && parts
            .all(|part| part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '<'))
}

fn js(name: &str, kind: FrameKind) -> Hue {
    // Names of JIT code with `/` have the path of a script; other JIT code is V8's builtins. V8 marks the names of
    // functions: `~` if they are interpreted, `^`, `+` or `*` if compiled, depending on the compiler.
    let is_script =
        name.starts_with(['~', '*', '^', '+']) || name.contains(".js") || name.contains(".ts");
    match kind {
        FrameKind::Kernel => Hue::Orange,
        FrameKind::Inlined => Hue::Aqua,
        FrameKind::Jit if is_script || name.contains('/') => Hue::Green,
        FrameKind::Jit => Hue::Aqua,
        FrameKind::User if is_script => Hue::Green,
        FrameKind::User if name.contains("::") => Hue::Yellow,
        FrameKind::User => Hue::Red,
    }
}

fn perl(name: &str, kind: FrameKind) -> Hue {
    match kind {
        FrameKind::Kernel => Hue::Orange,
        _ if name.contains("Perl") || name.contains(".pl") => Hue::Green,
        _ if name.contains("::") => Hue::Yellow,
        _ => Hue::Red,
    }
}

fn hot(name: &str) -> Rgb {
    // Two independent numbers let neighbours differ in hue and brightness.
    let (first, second) = (shade(name), shade2(name));
    Rgb(
        mix(205, 255, second),
        mix(0, 230, first),
        mix(0, 55, second),
    )
}

impl Hue {
    fn color(self, shade: f64) -> Rgb {
        let light = |low| mix(low, low + 45, shade);
        match self {
            Self::Red => Rgb(mix(200, 250, shade), light(70), light(70)),
            Self::Orange => Rgb(mix(200, 250, shade), mix(110, 165, shade), light(0)),
            Self::Yellow => Rgb(mix(185, 235, shade), mix(185, 235, shade), light(50)),
            Self::Green => Rgb(light(60), mix(190, 245, shade), light(60)),
            Self::Aqua => Rgb(light(60), mix(175, 220, shade), mix(175, 220, shade)),
            Self::Blue => Rgb(light(90), light(90), mix(200, 250, shade)),
            Self::Purple => Rgb(mix(180, 235, shade), light(90), mix(180, 235, shade)),
        }
    }
}

/// The colour of a difference: red for growth, blue for decline, grey for none. `max_change` is the largest growth or decline of
/// all frames.
pub(crate) fn difference(growth: i64, max_change: u64) -> Rgb {
    if growth == 0 || max_change == 0 {
        return Rgb(242, 242, 242);
    }
    let share = growth.unsigned_abs() as f64 / max_change as f64;
    // `rest` is the value of the two other components: the lower it is, the stronger is the red or blue. The square root makes
    // small differences visible, too.
    let rest = mix(215, 70, share.clamp(0.0, 1.0).sqrt());
    if growth > 0 {
        Rgb(255, rest, rest)
    } else {
        Rgb(rest, rest, 255)
    }
}

/// A number from 0 to 1 determined by the name.
fn shade(name: &str) -> f64 {
    (hash(name) >> 32) as f64 / f64::from(u32::MAX)
}

/// A second number from 0 to 1, independent of [`shade`].
fn shade2(name: &str) -> f64 {
    (hash(name) & 0xffff_ffff) as f64 / f64::from(u32::MAX)
}

/// FNV-1a, mixed, so that similar names have different colours.
fn hash(name: &str) -> u64 {
    let bytes = name.bytes();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

fn mix(from: u8, to: u8, share: f64) -> u8 {
    (f64::from(from) + (f64::from(to) - f64::from(from)) * share).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_colour_and_kinds_their_hue() {
        let hot = Palette::Hot;
        assert_eq!(
            hot.color("main", FrameKind::User),
            hot.color("main", FrameKind::Kernel)
        );
        assert_ne!(
            hot.color("main", FrameKind::User),
            hot.color("mains", FrameKind::User)
        );
        assert_eq!(
            java("Lorg/mozilla/javascript/Context;::call", FrameKind::Jit),
            Hue::Green
        );
        assert_eq!(java("java.lang.Thread.run", FrameKind::User), Hue::Green);
        assert_eq!(java("libjvm.so.1", FrameKind::User), Hue::Red);
        assert_eq!(java("JavaCalls::call_helper", FrameKind::User), Hue::Yellow);
        assert_eq!(java("do_syscall_64", FrameKind::Kernel), Hue::Orange);
    }

    #[test]
    fn differences_are_red_upwards_and_blue_downwards() {
        let Rgb(red, _, blue) = difference(5, 10);
        assert!(red == 255 && blue < 200);
        let Rgb(red, _, blue) = difference(-10, 10);
        assert!(blue == 255 && red == 70);
        assert_eq!(difference(0, 10), difference(0, 0));
    }
}
