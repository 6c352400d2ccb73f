//! Conversion of table fields to terms of a PMU.

use std::fmt::Write as _;

use super::row::{BadValue, Row};
use crate::number::number;

/// Fields whose value becomes that of a term, in the order of the terms. As in perf, [`terms`] writes the event's code before
/// them, and `umask`, the filter and the term of a register after them.
const FIELDS: [(&str, &str); 13] = [
    ("AnyThread", "any"),
    ("PortMask", "ch_mask"),
    ("CounterMask", "cmask"),
    ("EdgeDetect", "edge"),
    ("EnAllCores", "enallcores"),
    ("EnAllSlices", "enallslices"),
    ("FCMask", "fc_mask"),
    ("Invert", "inv"),
    ("NodeType", "type"),
    ("RdWrMask", "rdwrmask"),
    ("SampleAfterValue", "period"),
    ("SliceId", "sliceid"),
    ("ThreadMask", "threadmask"),
];

/// Intel's events whose fields in tables are ignored, as in perf, with the terms that the kernel expects: the fields of most
/// of them are the encoding of a fixed counter.
const FIXED: [(&str, &str); 6] = [
    ("inst_retired.any", "event=0xc0"),
    ("inst_retired.any_p", "event=0xc0"),
    ("cpu_clk_unhalted.ref", "event=0x0,umask=0x3"),
    ("cpu_clk_unhalted.thread", "event=0x3c"),
    ("cpu_clk_unhalted.core", "event=0x3c"),
    ("cpu_clk_unhalted.thread_any", "event=0x3c,any=0x1"),
];
/// The period of the events in [`FIXED`]: 2000003, as in perf.
const FIXED_PERIOD: &str = "period=0x1e8483";

/// Terms for the model-specific registers used by some events (`MSR_PEBS_LD_LAT_THRESHOLD`,
/// `MSR_OFFCORE_RSP_0` and `_1`, `MSR_PEBS_FRONTEND`).
const REGISTERS: [(u64, &str); 4] = [
    (0x3f6, "ldlat"),
    (0x1a6, "offcore_rsp"),
    (0x1a7, "offcore_rsp"),
    (0x3f7, "frontend"),
];

/// Returns the terms of an event, as in `event=0xd1,period=0xc365,umask=0x4`. `name` is in lower case.
pub(super) fn terms(name: &str, row: &Row) -> Result<String, BadValue> {
    if let Some((_, code)) = FIXED.iter().find(|(fixed, _)| *fixed == name) {
        return Ok(format!("{code},{FIXED_PERIOD}"));
    }
    let mut terms = match (row.number("ConfigCode")?, row.number("EventidCode")?) {
        (Some(config), _) => format!("config={config:#x}"),
        (None, Some(id)) => format!("eventid={id:#x}"),
        (None, None) => {
            let extended_select = row.number("ExtSel")?.unwrap_or_default();
            let code = row.number("EventCode")?.unwrap_or_default() | extended_select << 8;
            format!("event={code:#x}")
        }
    };
    for (field, term) in FIELDS {
        append(&mut terms, term, row.number(field)?.unwrap_or_default());
    }
    let extension = row.number("UMaskExt")?.unwrap_or_default();
    let mask = row.number("UMask")?.unwrap_or_default();
    append(&mut terms, "umask", mask | extension << 8);
    if let Some(filter) = row.text("Filter") {
        terms.push_str(&filter_terms(filter)?);
    }
    let register = row.number("MSRIndex")?.unwrap_or_default();
    if let Some((_, term)) = REGISTERS.iter().find(|(index, _)| *index == register) {
        append(
            &mut terms,
            term,
            row.number("MSRValue")?.unwrap_or_default(),
        );
    }
    Ok(terms)
}

/// Appends a term unless its value is 0.
fn append(terms: &mut String, term: &str, value: u64) {
    if value != 0 {
        // Writing to a string cannot fail.
        let _ = write!(terms, ",{term}={value:#x}");
    }
}

/// Returns the terms of a filter, with a comma before each; empty for `na`. Other filters that are not lists of `NAME=NUMBER`
/// are errors.
fn filter_terms(filter: &str) -> Result<String, BadValue> {
    if filter.eq_ignore_ascii_case("na") {
        return Ok(String::new());
    }
    let is_term = |part: &str| {
        let pair = part.trim().split_once('=');
        pair.is_some_and(|(key, value)| !key.is_empty() && number(value.trim()).is_some())
    };
    match filter.split(',').all(is_term) {
        true => Ok(format!(",{}", filter.replace(' ', ""))),
        false => Err(BadValue {
            key: "Filter",
            value: filter.to_owned(),
            expected: "a list of NAME=NUMBER",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_terms() {
        let row = Row::of(&[
            ("EventCode", "0xD1"),
            ("UMask", "0x04"),
            ("SampleAfterValue", "50021"),
            ("Invert", "0"),
            ("CounterMask", "2"),
        ]);
        assert_eq!(
            terms("mem_load_retired.l3_hit", &row).unwrap(),
            "event=0xd1,cmask=0x2,period=0xc365,umask=0x4"
        );
        // `Row::number` reads only the first number of a list.
        let row = Row::of(&[
            ("EventCode", "0xB7, 0xBB"),
            ("MSRIndex", "0x1a6,0x1a7"),
            ("MSRValue", "0x0000010001"),
        ]);
        assert_eq!(
            terms("ocr", &row).unwrap(),
            "event=0xb7,offcore_rsp=0x10001"
        );
        let row = Row::of(&[
            ("EventCode", "0x35"),
            ("ExtSel", "1"),
            ("UMask", "0x21"),
            ("UMaskExt", "0xC8"),
            ("Filter", "config1=0x40433, inv=0"),
        ]);
        assert_eq!(
            terms("unc", &row).unwrap(),
            "event=0x135,umask=0xc821,config1=0x40433,inv=0"
        );
        // 0x99 is none of `REGISTERS`: it has no term.
        let row = Row::of(&[("ConfigCode", "0x1000000000"), ("MSRIndex", "0x99")]);
        assert_eq!(terms("hisi", &row).unwrap(), "config=0x1000000000");
        let row = Row::of(&[("EventidCode", "0x1"), ("NodeType", "0x5")]);
        assert_eq!(terms("cmn", &row).unwrap(), "eventid=0x1,type=0x5");
    }

    #[test]
    fn fixed_counters_have_codes_of_their_own() {
        let row = Row::of(&[("EventCode", "0x00"), ("UMask", "0x01")]);
        assert_eq!(
            terms("inst_retired.any", &row).unwrap(),
            "event=0xc0,period=0x1e8483"
        );
    }

    #[test]
    fn errors_name_the_field_with_an_invalid_value() {
        let bad =
            |key: &'static str, value: &str| terms("x", &Row::of(&[(key, value)])).unwrap_err().key;
        assert_eq!(bad("EventCode", "twelve"), "EventCode");
        assert_eq!(bad("UMask", "0x"), "UMask");
        assert_eq!(bad("Filter", "CHAfilter1[3:0]"), "Filter");
    }
}
