use super::*;

use rperf_disasm::{InsnFlow, InstructionLine, LineSite, OperandAddress};
use rperf_replay::DsoId;
use rperf_resolve::{Frame, Level, SymbolId};
use rperf_symbol::SymbolIndex;

/// A source file of which only the second line is known.
struct OneLineSource;

impl SourceText for OneLineSource {
    fn line(&self, path: &str, line: u32) -> Option<&str> {
        (path == "/src/a.c" && line == 2).then_some("\tx++;")
    }
}

fn hit(samples: u64) -> HitCount {
    HitCount {
        samples,
        period: samples * 1000,
    }
}

/// The line of an instruction in a listing. `site` is the function, whether it is inlined, and the number of the source line,
/// which is 0 if unknown.
fn line(
    address: u64,
    bytes: &[u8],
    text: &str,
    samples: u64,
    site: (&'static str, bool, u32),
) -> InstructionLine<'static> {
    let (function, is_inlined, number) = site;
    InstructionLine {
        address,
        bytes: bytes.to_vec(),
        text: text.to_owned(),
        flow: InsnFlow::Next,
        target: None,
        referenced: None,
        hits: vec![hit(samples)],
        site: Some(LineSite {
            function,
            is_inlined,
            line: (number > 0).then_some(("/src/a.c", number)),
        }),
    }
}

/// Four instructions of `leaf`, one of them inlined from `twist`. The nine bytes of the second instruction, which are not the
/// encoding of its text, are more than one output line shows.
fn listing() -> Listing<'static> {
    let jump = InstructionLine {
        flow: InsnFlow::Jump,
        target: Some(OperandAddress {
            address: 0x113a,
            symbol: Some(("leaf", 1)),
        }),
        ..line(
            0x1143,
            &[0x75, 0xf6],
            "jne    113a",
            1,
            ("twist(int)", true, 117),
        )
    };
    Listing {
        start: 0x1139,
        end: 0x1150,
        lines: vec![
            line(0x1139, &[0x55], "push   %rbp", 0, ("leaf", false, 2)),
            line(
                0x113a,
                &[0x48; 9],
                "movq   $0x0,-0x8(%rbp)",
                3,
                ("leaf", false, 2),
            ),
            jump,
            line(0x1145, &[0xc3], "ret", 0, ("leaf", false, 0)),
        ],
    }
}

/// The output for a function with this listing and this many events. Each event has 4 samples in the function, to which
/// percentages and the title of the full layout refer; the title of the brief layout shows a total of 8 samples.
fn printed(listing: &Listing<'_>, events: usize, options: &AnnotateOptions) -> String {
    let index = SymbolIndex::new(0).unwrap();
    let function = SampledFunction {
        symbol: SymbolId {
            dso: DsoId(0),
            index,
        },
        frame: Frame::unknown(0, Level::User),
        hits: Vec::new(),
        sums: vec![hit(4); events],
    };
    let mut out = Vec::new();
    let annotated = Annotation {
        object: "/opt/demo/calc",
        name: "leaf",
        events: AnnotatedEvents {
            name: "cycles",
            plural: events > 1,
            frequency: Some(999),
            total: hit(8),
        },
        function: &function,
        listing,
        totals: &vec![hit(4); events],
        percent_type: "local period",
        source: &OneLineSource,
    };
    write_annotation(&mut out, &annotated, options).unwrap();
    String::from_utf8(out).unwrap()
}

fn printed_listing(options: &AnnotateOptions) -> String {
    printed(&listing(), 1, options)
}

#[test]
fn source_is_printed_where_it_changes() {
    let options = AnnotateOptions {
        source: true,
        ..AnnotateOptions::default()
    };
    // The width of the numbers, 8 more as in perf, and the length of the text after the tab.
    let rule = "-".repeat(8 + 8 + 79);
    let expected = format!(
        "\x20Percent |\tSource code & Disassembly of calc for cycles (4 samples, percent: local period)
{rule}
         :
         :       0000000000001139 <leaf>:
         :       leaf():
         : 2     x++;
    0.00 :   1139:   push   %rbp
   75.00 :   113a:   movq   $0x0,-0x8(%rbp)
         :       twist(int) (inlined):
         : 117   a.c:117
   25.00 :   1143:   jne    113a <leaf+0x1>
         :       leaf():
    0.00 :   1145:   ret

"
    );
    assert_eq!(printed_listing(&options), expected);
}

/// The counts are the periods of the instructions.
#[test]
fn bytes_counts_and_a_summary() {
    let options = AnnotateOptions {
        column: AnnotateColumn::Period,
        raw: true,
        print_line: true,
        full_paths: true,
        ..AnnotateOptions::default()
    };
    // The width of the numbers, 8 more as in perf, and the length of the text after the tab.
    let rule = "-".repeat(12 + 8 + 79);
    let expected = format!(
        "\nSorted summary for file /opt/demo/calc
----------------------------------------------

   75.00 /src/a.c:2
   25.00 /src/a.c:117
 Period      |\tSource code & Disassembly of calc for cycles (4 samples, percent: local period)
{rule}
             :
             :       0000000000001139 <leaf>:
             :       leaf():
           0 :   1139:   55                      push   %rbp
        3000 :   113a:   48 48 48 48 48 48 48    movq   $0x0,-0x8(%rbp) // /src/a.c:2
           0 :   1141:   48 48
             :       twist(int) (inlined):
        1000 :   1143:   75 f6                   jne    113a <leaf+0x1> // /src/a.c:117
             :       leaf():
           0 :   1145:   c3                      ret

"
    );
    assert_eq!(printed_listing(&options), expected);
}

#[test]
fn the_brief_layout_has_labels_and_arrows() {
    let options = AnnotateOptions {
        layout: AnnotateLayout::Brief,
        ..AnnotateOptions::default()
    };
    let expected = "\
Samples: 8  of event 'cycles', 999 Hz, Event count (approx.): 8000, [percent: local period]
leaf() /opt/demo/calc
Percent        
               
            0000000000001139 <leaf>:
            leaf():   
              push %rbp       
 75.00   1:   movq $0x0,-0x8(%rbp)
            twist(int) (inlined):
 25.00      ↑ jne  1        
            leaf():   
              ret           
";
    let trimmed = |text: &str| {
        let lines = text.lines().map(|line| line.trim_end().to_owned());
        lines.collect::<Vec<_>>()
    };
    assert_eq!(trimmed(&printed_listing(&options)), trimmed(expected));
}

#[test]
fn events_are_side_by_side() {
    let mut listing = listing();
    for line in &mut listing.lines {
        line.hits.insert(0, HitCount::default());
    }
    let text = printed(&listing, 2, &AnnotateOptions::default());
    assert!(text.starts_with(" Percent         |\tSource"), "{text}");
    assert!(
        text.contains("\n    0.00   75.00 :   113a:   movq"),
        "{text}"
    );
    let brief = AnnotateOptions {
        layout: AnnotateLayout::Brief,
        ..AnnotateOptions::default()
    };
    let text = printed(&listing, 2, &brief);
    assert!(text.contains("of events 'cycles'"), "{text}");
    assert!(text.contains("\n  0.00  75.00   1:   movq"), "{text}");
    assert!(text.contains("\nPercent        "), "{text}");
}

#[test]
fn large_shares_are_red() {
    let options = AnnotateOptions {
        // `Csi` is the start of each escape sequence. The plain one is ESC and `[`, without the mark by which a filter
        // recognises rperf's own sequences.
        colors: Some(Csi::PLAIN),
        ..AnnotateOptions::default()
    };
    let hot =
        "\x1b[31m   75.00\x1b[m : \x1b[35m  113a:\x1b[m\x1b[34m   movq   $0x0,-0x8(%rbp)\x1b[m\n";
    let cold = "\n    0.00 : \x1b[35m  1139:\x1b[m";
    let text = printed_listing(&options);
    assert!(text.contains(hot) && text.contains(cold), "{text}");
}

#[test]
fn only_hot_instructions_and_their_context() {
    let lines = (0..20).map(|at| {
        let samples = if at == 10 { 4 } else { 0 };
        line(0x1000 + at, &[0x90], "nop", samples, ("leaf", false, 2))
    });
    let listing = Listing {
        start: 0x1000,
        end: 0x1014,
        lines: lines.collect(),
    };
    let options = AnnotateOptions {
        // At most three; only one has samples. Four instructions on each side are its context.
        hottest: Some(3),
        ..AnnotateOptions::default()
    };
    let text = printed(&listing, 1, &options);
    let code = text.lines().filter_map(|line| line.split_once(" :   "));
    let addresses: Vec<&str> = code
        .filter_map(|(_, code)| code.split(':').next())
        .filter(|text| text.starts_with('1'))
        .collect();
    let expected = [
        "1006", "1007", "1008", "1009", "100a", "100b", "100c", "100d", "100e",
    ];
    assert_eq!(addresses, expected);
    assert_eq!(text.matches(" ...\n").count(), 2, "{text}");
}
