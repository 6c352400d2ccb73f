use rperf_lines::{BranchFlags, SourceLine, SymbolOffset};

use super::*;

const DEFAULT: [LineField; 10] = [
    LineField::Comm,
    LineField::Tid,
    LineField::Cpu,
    LineField::Time,
    LineField::Event,
    LineField::Ip,
    LineField::Sym,
    LineField::Symoff,
    LineField::Dso,
    LineField::Period,
];

pub(super) const STYLE: ScriptStyle = ScriptStyle {
    event_name_width: 16,
    full_paths: false,
    brief: false,
    nanoseconds: false,
    clock: Clock::Recorded,
    time_of_day: None,
    architecture: Architecture::X86,
};

fn line() -> SampleLine<'static> {
    SampleLine {
        comm: "calc",
        pid: 855,
        tid: 856,
        cpu: 1,
        time: 2_859_727_373_999,
        period: 1_001_001,
        misc: Misc(2),
        branch_flags: BranchFlags::default(),
    }
}

fn resolved() -> ResolvedAddress<'static> {
    ResolvedAddress {
        ip: 0x55ff_b970_0157,
        shown_address: 0x1157,
        symbol: Some(SymbolOffset {
            name: "leaf",
            offset: 0x1e,
        }),
        object: Some("/opt/demo/calc"),
        is_object_offset: true,
        inlined: false,
        source: SourceLocation::None,
    }
}

/// An address without a known symbol or object.
const NOWHERE: ResolvedAddress<'static> = ResolvedAddress {
    ip: 0,
    shown_address: 0,
    symbol: None,
    object: None,
    is_object_offset: false,
    inlined: false,
    source: SourceLocation::None,
};

/// Whether frames follow the line of a sample.
const STACKED: bool = true;
const ON_ONE_LINE: bool = false;

fn layout(name: &str, fields: &[LineField], shows_callchains: bool) -> ScriptLayout {
    styled(name, fields, shows_callchains, STYLE)
}

fn styled(
    name: &str,
    fields: &[LineField],
    shows_callchains: bool,
    style: ScriptStyle,
) -> ScriptLayout {
    let fields = LineFields::of(fields);
    let event = ScriptEvent {
        name,
        fields,
        shows_callchains,
        weight_parts: false,
        bpf_output: false,
    };
    ScriptLayout::new(&event, style)
}

fn text(layout: &ScriptLayout, line: &SampleLine<'_>) -> String {
    let mut block = ScriptBlock::default();
    layout.start(line, &mut block);
    let mut out = block.text;
    if layout.has_frame_lines() {
        out.push(b'\n');
        layout.frame(&resolved(), &mut out);
        layout.frame(&NOWHERE, &mut out);
    } else if layout.fields().has(LineField::Ip) {
        layout.address(&resolved(), &mut out);
    }
    out.push(b'\n');
    String::from_utf8(out).unwrap()
}

#[test]
fn a_single_line_has_the_runtime_address() {
    let layout = layout("cpu-clock:ppp", &DEFAULT, ON_ONE_LINE);
    assert_eq!(
        text(&layout, &line()),
        "            calc   856 [001]  2859.727373:    1001001    cpu-clock:ppp:      55ffb9700157 leaf+0x1e (/opt/demo/calc)\n"
    );
}

#[test]
fn a_stack_has_the_address_in_the_object() {
    let layout = layout("cpu-clock:ppp", &DEFAULT, STACKED);
    assert_eq!(
        text(&layout, &line()),
        "calc   856 [001]  2859.727373:    1001001    cpu-clock:ppp: \n\
         \t            1157 leaf+0x1e (/opt/demo/calc)\n\
         \t               0 [unknown] ([unknown])\n\n"
    );
}

#[test]
fn known_objects_have_the_offset_of_the_address() {
    let fields = [LineField::Ip, LineField::Dso, LineField::Dsoff];
    assert_eq!(
        text(&layout("cs", &fields, STACKED), &line()),
        "\n\t            1157 (/opt/demo/calc+0x1157)\n\
         \t               0 ([unknown])\n\n"
    );
}

#[test]
fn only_selected_fields_are_shown() {
    let only = |fields: &[LineField]| text(&layout("cs", fields, STACKED), &line());
    assert_eq!(
        only(&[LineField::Comm, LineField::Pid, LineField::Tid]),
        "            calc   855/856   \n"
    );
    assert_eq!(only(&[LineField::Pid]), "  855 \n");
    assert_eq!(
        only(&[LineField::Time, LineField::Event]),
        " 2859.727373:               cs: \n"
    );
    // Without `Ip`, no frames follow.
    assert_eq!(only(&[LineField::Sym, LineField::Dso]), "\n");
    assert_eq!(
        only(&[LineField::Ip]),
        "\n\t            1157\n\t               0\n\n"
    );
    assert_eq!(
        only(&[LineField::Comm, LineField::Ip, LineField::Sym]),
        "calc \n\t            1157 leaf\n\t               0 [unknown]\n\n"
    );
}

#[test]
fn missing_values_print_as_in_perf() {
    let line = SampleLine {
        comm: "a comm of 15 ch",
        pid: u32::MAX,
        tid: 1_234_567,
        cpu: u32::MAX,
        time: u64::MAX,
        period: 0,
        misc: Misc(0),
        branch_flags: BranchFlags::default(),
    };
    let fields = [
        LineField::Comm,
        LineField::Pid,
        LineField::Tid,
        LineField::Cpu,
        LineField::Time,
        LineField::Period,
    ];
    let layout = layout("cs", &fields, ON_ONE_LINE);
    assert_eq!(
        text(&layout, &line),
        " a comm of 15 ch    -1/1234567 [-01] 18446744073.709551:          0 \n"
    );
}

#[test]
fn inlined_frames_have_no_object_and_source_follows() {
    let fields = [
        LineField::Ip,
        LineField::Sym,
        LineField::Symoff,
        LineField::Dso,
        LineField::Srcline,
    ];
    let source_line = SourceLocation::Line(SourceLine {
        path: "/src/demo/leaf.h",
        line: 12,
    });
    let inlined = ResolvedAddress {
        inlined: true,
        source: source_line,
        ..resolved()
    };
    let without_line = ResolvedAddress {
        source: SourceLocation::Address {
            object: "[kernel.kallsyms]",
            address: 0xffff_ffff_8100_0000,
        },
        ..resolved()
    };
    let written = |layout: &ScriptLayout| {
        let mut out = Vec::new();
        layout.frame(&inlined, &mut out);
        layout.frame(&without_line, &mut out);
        String::from_utf8(out).expect("plain text")
    };
    let short = written(&layout("cs", &fields, STACKED));
    let expected = "\t            1157 leaf+0x1e\n  leaf.h:12 (inlined)\n\
                    \t            1157 leaf+0x1e (/opt/demo/calc)\n  [kernel.kallsyms][ffffffff81000000]\n";
    assert_eq!(short, expected);
    let style = ScriptStyle {
        full_paths: true,
        ..STYLE
    };
    let with_paths = written(&styled("cs", &fields, STACKED, style));
    assert_eq!(with_paths, expected.replace("leaf.h:", "/src/demo/leaf.h:"));
    let without_source = written(&layout("cs", &[LineField::Ip, LineField::Sym], STACKED));
    assert_eq!(
        without_source,
        "\t            1157 leaf (inlined)\n\t            1157 leaf\n"
    );
}

#[test]
fn nanoseconds_have_nine_digits() {
    let style = ScriptStyle {
        nanoseconds: true,
        ..STYLE
    };
    let layout = styled("cs", &[LineField::Time], ON_ONE_LINE, style);
    assert_eq!(text(&layout, &line()), " 2859.727373999: \n");
}
