use std::io::pipe;
use std::os::fd::OwnedFd;

use rperf_events::{Catalogue, parse};
use rperf_sys::poll;

use super::*;

/// A control with the ends of its pipes that others hold.
fn control() -> (Control, File, File) {
    let file = |fd| File::from(OwnedFd::from(fd));
    let (orders, to_orders) = pipe().unwrap();
    let (from_acks, acks) = pipe().unwrap();
    let acks = File::from(OwnedFd::from(acks));
    let control = Control::new(file(orders), Some(acks));
    (
        control,
        File::from(OwnedFd::from(to_orders)),
        file(from_acks),
    )
}

#[derive(Default)]
struct Heard(Vec<String>);

impl Watch for Heard {
    fn tell(&mut self, happened: Happened<'_>) {
        self.0.push(match happened {
            Happened::Switched { on } => format!("all {on}"),
            Happened::EventSwitched { event, on } => format!("{event} {on}"),
            Happened::NoSuchEvent { event } => format!("no {event}"),
            Happened::Listed { name, listing, .. } => format!("{name} {listing:?}"),
            Happened::NotUnderstood { order } => format!("what is {order}"),
            other => format!("{other:?}"),
        });
    }
}

/// An event that is open nowhere.
fn steered(spec: &EventSpec) -> Steered<'_> {
    Steered {
        attr: &spec.attr,
        leads: spec.group != Group::Member,
        counters: Vec::new(),
        spec,
    }
}

/// What was asked and heard once `text` had come.
fn after(control: &mut Control, text: &str, to: &mut File) -> (Asked, Vec<String>) {
    let specs = parse("{cs,faults},migrations", &Catalogue::default()).unwrap();
    let events = || specs.iter().map(steered).collect();
    to.write_all(text.as_bytes()).unwrap();
    let ready = poll(&[control.as_fd().unwrap()], 10_000).unwrap()[0];
    let mut heard = Heard::default();
    let asked = control.obey(ready, events, &mut heard).unwrap();
    (asked, heard.0)
}

fn acknowledged(from: &mut File) -> usize {
    let mut bytes = [0; 64];
    let size = from.read(&mut bytes).unwrap();
    assert!(bytes[..size].chunks(DONE.len()).all(|each| each == DONE));
    size / DONE.len()
}

#[test]
fn every_order_is_carried_out_told_and_acknowledged() {
    let (mut control, mut to, mut from) = control();
    let (asked, heard) = after(
        &mut control,
        "enable\ndisable cs\n\nenable x\0ping",
        &mut to,
    );
    assert_eq!(heard, ["all true", "cs false", "no x"]);
    let traces = Some(true);
    let expected = Asked {
        traces,
        ..Asked::default()
    };
    assert_eq!(asked, expected);
    assert_eq!(acknowledged(&mut from), 4);
    let (asked, heard) = after(&mut control, "evlist -g\nsnapshot\nstop\n", &mut to);
    assert_eq!(heard, ["{cs,faults} Groups", "migrations Groups"]);
    assert!(asked.snapshot && asked.stop);
    assert_eq!(acknowledged(&mut from), 3);
}

#[test]
fn an_order_in_two_writes_is_one_and_none_is_said_to_be_none() {
    let (mut control, mut to, mut from) = control();
    let (asked, heard) = after(&mut control, "st", &mut to);
    assert_eq!((asked, heard.len()), (Asked::default(), 0));
    let (asked, heard) = after(&mut control, "op\nback off\n", &mut to);
    assert!(asked.stop);
    assert_eq!(heard, ["what is back off"]);
    assert_eq!(acknowledged(&mut from), 1);
}

#[test]
fn who_stops_ordering_is_not_waited_for() {
    let (mut control, to, from) = control();
    drop((to, from));
    let ready = poll(&[control.as_fd().unwrap()], 10_000).unwrap()[0];
    let asked = control.obey(ready, Vec::new, &mut Heard::default());
    assert_eq!(asked.unwrap(), Asked::default());
    assert!(control.as_fd().is_none());
    control.acknowledge();
    assert!(control.acknowledgements.is_none());
}
