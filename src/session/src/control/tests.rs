use std::io::pipe;
use std::os::fd::OwnedFd;

use rperf_events::{Catalogue, parse};
use rperf_sys::poll;

use super::*;

/// A control and the other ends of its pipes: to write commands, and to read acknowledgements.
fn control() -> (Control, File, File) {
    // Two closures, since the types of the ends differ.
    let read_end = |fd| File::from(OwnedFd::from(fd));
    let write_end = |fd| File::from(OwnedFd::from(fd));
    let (commands, to_commands) = pipe().unwrap();
    let (from_acks, acks) = pipe().unwrap();
    let control = Control::new(read_end(commands), Some(write_end(acks)));
    (control, write_end(to_commands), read_end(from_acks))
}

#[derive(Default)]
struct ReportedMessages(Vec<String>);

impl SessionObserver for ReportedMessages {
    fn on_event(&mut self, notice: SessionNotice<'_>) {
        self.0.push(match notice {
            SessionNotice::Switched { on } => format!("all {on}"),
            SessionNotice::EventSwitched { event, on } => format!("{event} {on}"),
            SessionNotice::NoSuchEvent { event } => format!("no {event}"),
            SessionNotice::Listed { name, listing, .. } => format!("{name} {listing:?}"),
            SessionNotice::UnknownCommand { command } => format!("what is {command}"),
            other => format!("{other:?}"),
        });
    }
}

/// An event without open counters.
fn controlled(spec: &EventSpec) -> ControlledCounters<'_> {
    ControlledCounters {
        attr: &spec.attr,
        is_switched_with_all: spec.group != GroupPosition::Member,
        counters: Vec::new(),
        spec,
    }
}

/// Sends `text`, and returns the requests and the reported messages.
fn execute(control: &mut Control, text: &str, to: &mut File) -> (ControlRequests, Vec<String>) {
    let specs = parse("{cs,faults},migrations", &Catalogue::default()).unwrap();
    let events = || specs.iter().map(controlled).collect();
    to.write_all(text.as_bytes()).unwrap();
    let ready = poll(&[control.as_fd().unwrap()], 10_000).unwrap()[0];
    let mut reported = ReportedMessages::default();
    let requests = control
        .handle_commands(ready, events, &mut reported)
        .unwrap();
    (requests, reported.0)
}

fn count_acknowledgements(from: &mut File) -> usize {
    let mut bytes = [0; 64];
    let size = from.read(&mut bytes).unwrap();
    assert!(
        bytes[..size]
            .chunks(ACKNOWLEDGEMENT.len())
            .all(|chunk| chunk == ACKNOWLEDGEMENT)
    );
    size / ACKNOWLEDGEMENT.len()
}

#[test]
fn every_command_is_executed_and_acknowledged() {
    let (mut control, mut to, mut from) = control();
    // A command ends with a newline or NUL; `ping` is complete without them, since it is a known command. The empty line is not a
    // command, so there are four commands; `enable` of an unknown event is acknowledged, too.
    let (requests, reported) = execute(
        &mut control,
        "enable\ndisable cs\n\nenable x\0ping",
        &mut to,
    );
    assert_eq!(reported, ["all true", "cs false", "no x"]);
    let expected = ControlRequests {
        // `enable` without a name sets this, even if no event is a hardware trace. `disable cs` does not change it, since `cs` is
        // not a hardware trace.
        traces_run: Some(true),
        ..ControlRequests::default()
    };
    assert_eq!(requests, expected);
    assert_eq!(count_acknowledgements(&mut from), 4);
    let (requests, reported) = execute(&mut control, "evlist -g\nsnapshot\nstop\n", &mut to);
    assert_eq!(reported, ["{cs,faults} Groups", "migrations Groups"]);
    assert!(requests.snapshot && requests.stop);
    assert_eq!(count_acknowledgements(&mut from), 3);
}

#[test]
fn commands_may_be_split_and_unknown_ones_are_reported() {
    let (mut control, mut to, mut from) = control();
    let (requests, reported) = execute(&mut control, "st", &mut to);
    assert_eq!((requests, reported.len()), (ControlRequests::default(), 0));
    let (requests, reported) = execute(&mut control, "op\nback off\n", &mut to);
    assert!(requests.stop);
    assert_eq!(reported, ["what is back off"]);
    assert_eq!(count_acknowledgements(&mut from), 1);
}

#[test]
fn closed_pipes_are_no_longer_used() {
    let (mut control, to, from) = control();
    drop((to, from));
    let ready = poll(&[control.as_fd().unwrap()], 10_000).unwrap()[0];
    let requests = control.handle_commands(ready, Vec::new, &mut ReportedMessages::default());
    assert_eq!(requests.unwrap(), ControlRequests::default());
    assert!(control.as_fd().is_none());
    control.acknowledge();
    assert!(control.acknowledgements.is_none());
}
