//! Modifiers: the letters after an event's colon.

use rperf_wire::{Attr, AttrFlags};

use crate::EventSpec;

/// Letters that are modifiers. `X` (do not reorder the event) has no effect: events are never reordered.
const LETTERS: &str = "ukhGHpPSDIWebX";

/// Splits the name of an event at its last colon, if only modifiers, or nothing, follow; otherwise returns `None`. The modifiers
/// may include `R`, which recordings of perf contain.
#[must_use]
pub fn split_modifiers(name: &str) -> Option<(&str, &str)> {
    let is_modifier = |letter: char| letter == 'R' || LETTERS.contains(letter);
    let split = name.rsplit_once(':');
    split.filter(|(_, letters)| letters.chars().all(is_modifier))
}

/// The modifiers of an event or a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Modifiers {
    letters: String,
}

/// An invalid letter.
pub(crate) struct BadModifier {
    /// The byte offset of the letter.
    pub(crate) offset: usize,
    /// Why it is invalid.
    pub(crate) reason: String,
}

impl Modifiers {
    /// Checks the letters after the colon.
    pub(crate) fn parse(letters: &str) -> Result<Self, BadModifier> {
        let max_count = |letter| if letter == 'p' { 3 } else { 1 };
        for (offset, letter) in letters.char_indices() {
            let bad = |reason: String| Err(BadModifier { offset, reason });
            if letter == 'R' {
                return bad("the modifier `R' (retirement latency) is not available yet".to_owned());
            }
            if !LETTERS.contains(letter) {
                return bad(format!(
                    "unknown modifier `{letter}', expected letters of `{LETTERS}'"
                ));
            }
            let before = letters.get(..offset).unwrap_or_default();
            if before.matches(letter).count() == max_count(letter) {
                return bad(format!("bad modifier: `{letter}' is given too often"));
            }
        }
        if letters.is_empty() {
            let reason = format!("expected modifiers after the colon, letters of `{LETTERS}'");
            return Err(BadModifier { offset: 0, reason });
        }
        Ok(Self {
            letters: letters.to_owned(),
        })
    }

    /// Whether this letter is present.
    pub(crate) fn has(&self, letter: char) -> bool {
        self.letters.contains(letter)
    }

    /// Sets the bits of an attr. The caller stores `P`, `S`, `W` and `b` in the [`EventSpec`]; of these, only `P` also changes
    /// the attr here (`precise_ip`).
    ///
    /// As in perf, guests are excluded if there are no modifiers, or if they contain `u` or `p`; `G` and `H` override this.
    pub(crate) fn apply(&self, attr: &mut Attr) {
        let has_level = self.has('u') || self.has('k') || self.has('h');
        let has_machine = self.has('G') || self.has('H');
        let exclude_guest = if has_machine {
            !self.has('G')
        } else {
            self.letters.is_empty() || self.has('u') || self.has('p')
        };
        for (flag, on) in [
            (AttrFlags::EXCLUDE_USER, has_level && !self.has('u')),
            (AttrFlags::EXCLUDE_KERNEL, has_level && !self.has('k')),
            (AttrFlags::EXCLUDE_HV, has_level && !self.has('h')),
            (AttrFlags::EXCLUDE_GUEST, exclude_guest),
            (AttrFlags::EXCLUDE_HOST, has_machine && !self.has('H')),
            (AttrFlags::PINNED, self.has('D')),
            (AttrFlags::EXCLUDE_IDLE, self.has('I')),
            (AttrFlags::EXCLUSIVE, self.has('e')),
        ] {
            attr.flags = attr.flags.with(flag, on);
        }
        attr.set_precise_ip(self.precision());
    }

    /// Adds the modifiers of a group to an event that may have modifiers of its own. `D` and `e` are only set for the leader
    /// (`is_leader`), which determines whether a group is pinned or exclusive.
    pub(crate) fn add_to(&self, event: &mut EventSpec, is_leader: bool) {
        let flags = &mut event.attr.flags;
        // The loop below includes the group's levels, in addition to those of the event. If the event has none of its own, it
        // counts only at the group's, so all levels are excluded first. The same applies to guests and hosts.
        let all_levels =
            AttrFlags::EXCLUDE_USER | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
        let has_level = self.has('u') || self.has('k') || self.has('h');
        if has_level && (flags.0 & all_levels.0) == 0 {
            *flags |= all_levels;
        }
        let all_machines = AttrFlags::EXCLUDE_GUEST | AttrFlags::EXCLUDE_HOST;
        if (self.has('G') || self.has('H')) && !event.has_guest_or_host_modifier {
            *flags |= all_machines;
            event.has_guest_or_host_modifier = true;
        }
        if !event.has_guest_or_host_modifier && (self.has('u') || self.has('p')) {
            *flags |= AttrFlags::EXCLUDE_GUEST;
        }
        for (letter, flag, on) in [
            ('u', AttrFlags::EXCLUDE_USER, false),
            ('k', AttrFlags::EXCLUDE_KERNEL, false),
            ('h', AttrFlags::EXCLUDE_HV, false),
            ('G', AttrFlags::EXCLUDE_GUEST, false),
            ('H', AttrFlags::EXCLUDE_HOST, false),
            ('D', AttrFlags::PINNED, is_leader),
            ('I', AttrFlags::EXCLUDE_IDLE, true),
            ('e', AttrFlags::EXCLUSIVE, is_leader),
        ] {
            if self.has(letter) {
                *flags = flags.with(flag, on);
            }
        }
        let precision = event.attr.precise_ip() + self.precision();
        event.attr.set_precise_ip(precision.min(3));
        event.precise_max |= self.has('P');
        event.sample_read |= self.has('S');
        event.weak |= self.has('W');
        event.bpf |= self.has('b');
    }

    /// The `precise_ip` of these modifiers. `P` starts at the maximum; it is lowered until the kernel accepts the event.
    fn precision(&self) -> u8 {
        let precise = if self.has('P') {
            3
        } else {
            self.letters.matches('p').count()
        };
        u8::try_from(precise).unwrap_or(3)
    }
}
