//! Events that switch the showing of others on and off.

/// Which samples are shown, by `--switch-on` and `--switch-off`. Samples must come in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventSwitch {
    on: Option<usize>,
    off: Option<usize>,
    /// Whether the samples that switch are shown themselves.
    shows_itself: bool,
    is_off: bool,
}

impl EventSwitch {
    /// Samples are shown from one of the event at place `on` to one of that at place `off`.
    #[must_use]
    pub fn new(on: Option<usize>, off: Option<usize>, shows_itself: bool) -> Self {
        Self {
            on,
            off,
            shows_itself,
            is_off: on.is_some(),
        }
    }

    /// Whether it may leave out anything.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        self.on.is_some() || self.off.is_some()
    }

    /// Whether samples of the event at place `event` may switch.
    #[must_use]
    pub fn concerns(&self, event: usize) -> bool {
        [self.on, self.off].contains(&Some(event))
    }

    /// Whether a sample that does not switch would be shown now.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.is_off
    }

    /// Whether a sample of the event at place `event` is shown, which may switch.
    pub fn shows(&mut self, event: usize) -> bool {
        let switches = match self.is_off {
            true if self.on.is_some() => self.on,
            true => return false,
            false => self.off,
        };
        if switches != Some(event) {
            return !self.is_off;
        }
        self.is_off = !self.is_off;
        self.shows_itself
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(mut switch: EventSwitch, events: &[usize]) -> Vec<bool> {
        events.iter().map(|event| switch.shows(*event)).collect()
    }

    #[test]
    fn from_one_event_to_another() {
        let events = [0, 1, 0, 2, 0, 2, 1, 0];
        let (no, yes) = (false, true);
        assert_eq!(
            shown(EventSwitch::new(Some(1), Some(2), false), &events),
            [no, no, yes, no, no, no, no, yes]
        );
        assert_eq!(
            shown(EventSwitch::new(Some(1), Some(2), true), &events),
            [no, yes, yes, yes, no, no, yes, yes]
        );
        assert_eq!(
            shown(EventSwitch::new(Some(1), None, false), &events),
            [no, no, yes, yes, yes, yes, yes, yes]
        );
        assert_eq!(shown(EventSwitch::default(), &events), [yes; 8]);
    }
}
