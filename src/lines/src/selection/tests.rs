use rperf_wire::EventType;

use super::*;

fn attr(kind: EventType, bits: &[SampleType]) -> Attr {
    let is_set = true;
    Attr {
        kind,
        sample_type: bits
            .iter()
            .fold(SampleType::default(), |all, bit| all.with(*bit, is_set)),
        ..Attr::default()
    }
}

fn clock() -> Attr {
    let bits = [
        SampleType::IP,
        SampleType::TID,
        SampleType::TIME,
        SampleType::PERIOD,
    ];
    attr(EventType::SOFTWARE, &bits)
}

fn applied(lists: &[&str]) -> Result<FieldSelection, Error> {
    let mut selection = FieldSelection::default();
    for list in lists {
        selection.apply(list)?;
    }
    Ok(selection)
}

/// The names of the fields selected for a file's only event, `attr`: `lists` are applied, then checked against the event.
fn fields(lists: &[&str], attr: &Attr) -> Result<Vec<&'static str>, Error> {
    let mut selection = applied(lists)?;
    selection.fit_to_events([(attr, "an-event")].into_iter())?;
    let selected = selection.fields(attr);
    let names = LineFields::ALL.iter().filter(|field| selected.has(**field));
    Ok(names.map(LineField::name).collect())
}

#[test]
fn default_fields_exclude_unrecorded_ones() {
    let without_cpu = [
        "comm",
        "tid",
        "time",
        "event",
        "ip",
        "sym",
        "dso",
        "symoff",
        "period",
        // A default field of all software events: it requires no attribute of the samples.
        "bpf-output",
    ];
    assert_eq!(fields(&[], &clock()).unwrap(), without_cpu);
    let mut with_cpu = clock();
    let is_set = true;
    with_cpu.sample_type = with_cpu.sample_type.with(SampleType::CPU, is_set);
    assert!(fields(&[], &with_cpu).unwrap().contains(&"cpu"));
}

#[test]
fn lists_replace_add_and_remove() {
    assert_eq!(fields(&["comm,ip"], &clock()).unwrap(), ["comm", "ip"]);
    assert_eq!(fields(&["comm,,ip,"], &clock()).unwrap(), ["comm", "ip"]);
    assert_eq!(
        fields(&["comm", "pid,time"], &clock()).unwrap(),
        ["pid", "time"]
    );
    assert_eq!(
        fields(&["comm", "+pid", "-comm"], &clock()).unwrap(),
        ["pid"]
    );
    assert_eq!(fields(&["sw:ip"], &clock()).unwrap(), ["ip"]);
    assert!(
        fields(&["-ip,-sym,-symoff,-dso,+pid"], &clock())
            .unwrap()
            .contains(&"pid")
    );
    assert_eq!(
        fields(&["comm,trace"], &clock()).unwrap(),
        ["comm"],
        "software events have no such field"
    );
}

#[test]
fn fields_requested_for_all_events_must_be_recorded() {
    let error = fields(&["comm,cpu"], &clock()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Samples for 'an-event' event do not have CPU attribute set. Cannot print 'cpu' field."
    );
    assert!(!error.is_usage());
    assert_eq!(
        fields(&["sw:comm,cpu"], &clock()).unwrap(),
        ["comm"],
        "with a class, an unrecorded field is dropped without a message"
    );
    assert_eq!(
        fields(&["symoff"], &clock()),
        Err(Error::OffsetWithoutSymbol)
    );
    let bare = attr(EventType::SOFTWARE, &[SampleType::TID]);
    assert_eq!(fields(&["sym"], &bare), Err(Error::NoAddressForSymbols));
    assert_eq!(fields(&["dso"], &bare), Err(Error::NoAddressForDso));
    // A list that names a class but no fields (`hw:`) requires events of this class.
    assert_eq!(
        fields(&["hw:"], &clock()),
        Err(Error::NoSuchEvents {
            class: EventClass::Hardware
        })
    );
}

#[test]
fn requested_fields_of_raw_events_must_be_recorded() {
    let bits = [
        SampleType::IP,
        SampleType::ADDR,
        SampleType::DATA_SRC,
        SampleType::WEIGHT_STRUCT,
        SampleType::CODE_PAGE_SIZE,
    ];
    let load = attr(EventType::RAW, &bits);
    let selected = fields(&[], &load).unwrap();
    for field in ["addr", "data_src", "weight", "ins_lat", "code_page_size"] {
        assert!(selected.contains(&field), "{field}");
    }
    for field in ["phys_addr", "data_page_size", "iregs", "brstack"] {
        assert!(!selected.contains(&field), "{field}");
    }
    for (field, attribute) in [
        ("iregs", "IREGS"),
        ("uregs", "UREGS"),
        ("phys_addr", "PHYS_ADDR"),
        ("data_page_size", "DATA_PAGE_SIZE"),
    ] {
        let error = fields(&[field], &load).unwrap_err().to_string();
        assert!(error.contains(&format!(" {attribute} ")), "{error}");
        assert!(error.contains(&format!("'{field}'")), "{error}");
    }
    let weighed = attr(EventType::RAW, &[SampleType::IP, SampleType::WEIGHT]);
    assert!(fields(&["weight"], &weighed).is_ok());
    assert!(fields(&["ins_lat"], &weighed).is_err());
    assert!(fields(&["retire_lat"], &weighed).is_err());
    assert!(fields(&["+retire_lat"], &load).is_ok());
    assert!(fields(&["+cgroup"], &load).is_err());
    // `dsoff` selects `dso` too.
    let offsets = fields(&["ip,dsoff"], &weighed).unwrap();
    assert_eq!(offsets, ["ip", "dso", "dsoff"]);
}

#[test]
fn source_fields_need_the_field_ip() {
    let sampled = attr(EventType::SOFTWARE, &[SampleType::IP]);
    assert!(fields(&["ip,srccode"], &sampled).is_ok());
    for list in ["comm,srccode", "comm,srcline"] {
        assert_eq!(fields(&[list], &sampled), Err(Error::NoAddressForLines));
    }
}

#[test]
fn instructions_of_branches_need_branches_of_all_types() {
    let sampled = attr(EventType::SOFTWARE, &[SampleType::IP]);
    let branches = Attr {
        branch_sample_type: BranchSampleType::ANY,
        ..sampled.clone()
    };
    for list in ["brstackinsn", "brstackinsnlen"] {
        assert_eq!(fields(&[list], &sampled), Err(Error::NotAllBranches));
        assert!(fields(&[list], &branches).is_ok());
    }
}

#[test]
fn invalid_lists_are_usage_errors() {
    let refused = |list: &str| {
        let error = applied(&[list]).unwrap_err();
        assert!(error.is_usage(), "{error}");
        error.to_string()
    };
    assert_eq!(refused("comm,nosuch"), "Invalid field requested.");
    assert_eq!(refused("x:comm"), "Invalid event type in field string.");
    assert_eq!(
        refused(""),
        "Cannot set fields to 'none' for all event types."
    );
    assert_eq!(
        refused("hw:trace"),
        "'trace' not valid for hardware events."
    );
    for mixed in ["+time,comm", "comm,+time", "comm,-time"] {
        assert_eq!(refused(mixed), "Cannot mix +-field with overridden fields");
    }
    assert!(FieldSelection::valid_fields().starts_with("comm,tid,pid,time,cpu"));
}

#[test]
fn repeated_lists_cause_warnings() {
    let warnings = |lists: &[&str]| -> Vec<String> {
        let selection = applied(lists).unwrap();
        selection
            .warnings()
            .iter()
            .map(FieldWarning::to_string)
            .collect()
    };
    assert!(warnings(&["comm"]).is_empty());
    assert_eq!(
        warnings(&["comm", "time"]),
        ["Overriding previous field request for all events."]
    );
    assert_eq!(
        warnings(&["sw:comm", "sw:time"]),
        ["Overriding previous field request for software events."]
    );
}

#[test]
fn frames_of_tracepoints_are_shown_unless_a_list_applies_to_tracepoints() {
    let tracepoint = attr(
        EventType::TRACEPOINT,
        &[SampleType::IP, SampleType::TIME, SampleType::CALLCHAIN],
    );
    let selected = fields(&[], &tracepoint).unwrap();
    let frames = ["ip", "sym", "dso", "symoff"];
    assert!(selected.contains(&"trace") && frames.iter().all(|field| selected.contains(field)));
    assert_eq!(
        fields(&["-trace"], &tracepoint).unwrap(),
        ["comm", "time", "event"]
    );
    assert_eq!(
        fields(&["comm,trace"], &tracepoint).unwrap(),
        ["comm", "trace"]
    );
    // From a list for all classes, `trace` is dropped for events that are not tracepoints.
    let clock = attr(EventType::SOFTWARE, &[SampleType::IP]);
    assert_eq!(fields(&["ip,trace"], &clock).unwrap(), ["ip"]);
}

/// The names of the fields selected for the first of `events`: `lists` are applied, then checked against these events of a
/// stream.
fn streamed(lists: &[&str], events: &[&Attr]) -> Vec<&'static str> {
    let mut selection = applied(lists).unwrap();
    let named = events.iter().map(|attr| (*attr, "event"));
    selection.fit_to_stream(named).unwrap();
    let selected = selection.fields(events[0]);
    let names = LineFields::ALL.iter().filter(|field| selected.has(**field));
    names.map(LineField::name).collect()
}

#[test]
fn a_stream_shows_frames_unless_removed_by_name() {
    let chain = [SampleType::IP, SampleType::TIME, SampleType::CALLCHAIN];
    let tracepoint = attr(EventType::TRACEPOINT, &chain);
    let clock = attr(EventType::SOFTWARE, &[SampleType::IP, SampleType::TIME]);
    let selected = streamed(&[], &[&tracepoint]);
    let has = |field| selected.contains(&field);
    // Of the fields of frames, a stream adds only `ip` and `sym`; a file also `dso` and `symoff`.
    assert!(has("trace") && has("ip") && has("sym") && !has("dso") && !has("symoff"));
    assert_eq!(streamed(&["time"], &[&clock]), ["time"]);
    // As in perf, if one event has callchains, `ip` and `sym` are added to all events.
    assert_eq!(
        streamed(&["time"], &[&clock, &tracepoint]),
        ["time", "ip", "sym"]
    );
    assert_eq!(
        streamed(&["-ip,-sym,-dso,-symoff"], &[&tracepoint]),
        ["comm", "time", "event", "trace"]
    );
}

#[test]
fn a_stream_may_describe_requested_events_later() {
    let clock = attr(EventType::SOFTWARE, &[SampleType::IP, SampleType::TIME]);
    // Hardware events, of which the stream has none yet.
    let lists = ["hw:"];
    assert_eq!(streamed(&lists, &[&clock]), streamed(&[], &[&clock]));
    assert!(
        fields(&lists, &clock).is_err(),
        "a file has no further events"
    );
}
