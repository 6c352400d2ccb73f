//! Events that enable and disable the display of other events.

/// Implements `--switch-on` and `--switch-off`. Samples must be passed in order of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventSwitch {
    /// Index of the event whose samples switch the display on.
    on: Option<usize>,
    /// Index of the event whose samples switch the display off.
    off: Option<usize>,
    /// Whether the switching samples are shown themselves.
    shows_switch_events: bool,
    /// Whether the display is off now.
    is_off: bool,
}

impl EventSwitch {
    /// Shows the samples after a sample of the event with index `on`, until a sample of the event with index `off`. Without
    /// `on`, samples are shown from the start until the first sample of `off`; without `off`, they are shown to the end.
    #[must_use]
    pub fn new(on: Option<usize>, off: Option<usize>, shows_switch_events: bool) -> Self {
        Self {
            on,
            off,
            shows_switch_events,
            is_off: on.is_some(),
        }
    }

    /// Whether any samples may be hidden.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        self.on.is_some() || self.off.is_some()
    }

    /// Whether samples of the event with index `event` may switch the display on or off.
    #[must_use]
    pub fn concerns(&self, event: usize) -> bool {
        [self.on, self.off].contains(&Some(event))
    }

    /// Whether the display is on now.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.is_off
    }

    /// Processes a sample of the event with index `event`, which may switch the display on or off; returns whether the
    /// sample is shown.
    pub fn shows(&mut self, event: usize) -> bool {
        let switching_event = match self.is_off {
            true if self.on.is_some() => self.on,
            // Without `on`, the display stays off.
            true => return false,
            false => self.off,
        };
        if switching_event != Some(event) {
            return !self.is_off;
        }
        self.is_off = !self.is_off;
        self.shows_switch_events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_shown(mut switch: EventSwitch, events: &[usize]) -> Vec<bool> {
        events.iter().map(|event| switch.shows(*event)).collect()
    }

    #[test]
    fn samples_are_shown_between_the_switch_events() {
        let events = [0, 1, 0, 2, 0, 2, 1, 0];
        let (no, yes) = (false, true);
        let (on, off) = (Some(1), Some(2));
        let switch = |off, shows_switch_events| EventSwitch::new(on, off, shows_switch_events);
        assert_eq!(
            are_shown(switch(off, no), &events),
            [no, no, yes, no, no, no, no, yes]
        );
        assert_eq!(
            are_shown(switch(off, yes), &events),
            [no, yes, yes, yes, no, no, yes, yes]
        );
        assert_eq!(
            are_shown(switch(None, no), &events),
            [no, no, yes, yes, yes, yes, yes, yes]
        );
        assert_eq!(are_shown(EventSwitch::default(), &events), [yes; 8]);
    }
}
