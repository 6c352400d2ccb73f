//! Reports: a report that replaces another, the lines of the event menu, and an answer that arrives while a popup is open.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use rperf_hist::ColumnSum;

use super::*;
use crate::{
    BrowserRequest, Input, InputResult, ReaderMessage, ReportScreen, ReportTable, ReportTables,
    SharedSessionEnd,
};

fn screen() -> (ReportScreen, Receiver<BrowserRequest>) {
    let (sender, requests) = channel();
    // What the screen asks for when it is closed, such as another recording; not read here.
    let end = SharedSessionEnd::default();
    let (is_verbose, has_colors) = (false, true);
    let screen = ReportScreen::new(sender, end, is_verbose, Theme::new(has_colors));
    (screen, requests)
}

/// A report with a table for each of these events.
fn report(names: &[&str]) -> ReaderMessage {
    let tables = names.iter().map(|name| ReportTable {
        name: (*name).to_owned(),
        ..ReportTable::default()
    });
    let tables = tables.collect();
    ReaderMessage::Report {
        report: Arc::new(ReportTables {
            tables,
            ..ReportTables::default()
        }),
        // The report is complete.
        partial: None,
    }
}

fn press(screen: &mut ReportScreen, code: KeyCode) -> InputResult<ReaderMessage> {
    screen.input(Input::Key(key(code)))
}

/// If the shown table is missing from a new report with a single table, that one is shown instead.
#[test]
fn a_single_table_replaces_the_last_of_several() {
    let (mut screen, _requests) = screen();
    screen.message(&report(&["cycles", "faults", "switches"]));
    // Chooses the third event in the event menu.
    for code in [KeyCode::Down, KeyCode::Down, KeyCode::Enter] {
        drawn(&mut screen, 60, 10);
        press(&mut screen, code);
    }
    assert!(drawn(&mut screen, 60, 10)[0].contains("'switches'"));
    // Events without samples are left out: the report of `top` may have fewer tables than before.
    screen.message(&report(&["cycles"]));
    assert!(drawn(&mut screen, 60, 10)[0].contains("'cycles'"));
}

#[test]
fn counts_and_names_of_the_event_menu_are_separated() {
    let (mut screen, _requests) = screen();
    let table = |name: &str, samples| {
        let mut table = ReportTable {
            name: name.to_owned(),
            ..ReportTable::default()
        };
        table.histogram.totals = vec![ColumnSum {
            samples,
            ..ColumnSum::default()
        }];
        table
    };
    let tables = vec![table("cycles", 12_345), table("faults", 11)];
    screen.message(&ReaderMessage::Report {
        report: Arc::new(ReportTables {
            tables,
            ..ReportTables::default()
        }),
        // The report is complete.
        partial: None,
    });
    let lines = drawn(&mut screen, 60, 10);
    assert_eq!(lines[1..3], ["    12K cycles", "     11 faults"]);
}

#[test]
fn recordings_are_not_offered_over_another_popup() {
    let recordings = ReaderMessage::Recordings(vec!["perf.data".to_owned()]);
    for is_popup_open in [false, true] {
        let (screen, _requests) = screen();
        let mut screen = screen.asking(BrowserRequest::Recordings);
        screen.message(&report(&["cycles"]));
        if is_popup_open {
            // The popup that asks for the percent limit.
            let opened = press(&mut screen, KeyCode::Char('L'));
            assert!(matches!(opened, InputResult::Push(_)));
        }
        let answered = screen.message(&recordings);
        assert_eq!(matches!(answered, InputResult::Push(_)), !is_popup_open);
        // The first message answered the only request, even if the recordings were not offered.
        let repeated = screen.message(&recordings);
        assert!(matches!(repeated, InputResult::Unchanged));
    }
}
