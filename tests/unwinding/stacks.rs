//! Parses stacks printed by `script`.

/// One sample: its first line, and its frames.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Printed<'t> {
    pub(super) head: &'t str,
    /// Address, symbol with offset, and object, innermost first.
    pub(super) frames: Vec<&'t str>,
}

/// The samples of a text.
pub(super) fn read(text: &str) -> Vec<Printed<'_>> {
    let mut samples: Vec<Printed<'_>> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix('\t'), samples.last_mut()) {
            (Some(frame), Some(sample)) => sample.frames.push(frame.trim_start()),
            (None, _) if !line.is_empty() => samples.push(Printed {
                head: line,
                frames: Vec::new(),
            }),
            _ => {}
        }
    }
    samples
}

/// The symbol of a frame, without offset.
pub(super) fn symbol(frame: &str) -> &str {
    let after_address = frame.split_once(' ').map_or("", |(_, rest)| rest);
    let name = after_address
        .rsplit_once(" (")
        .map_or(after_address, |(name, _)| name);
    name.rsplit_once("+0x").map_or(name, |(name, _)| name)
}

#[test]
fn frames_are_parsed() {
    let text = "prog 1 2.3: 4 e: \n\t    10a0 f<g +0x1>(int)+0x12 (/a b)\n\t ff [unknown] ([unknown])\n\nprog 2\n";
    let samples = read(text);
    assert_eq!(samples.len(), 2);
    let symbols: Vec<&str> = samples[0]
        .frames
        .iter()
        .map(|frame| symbol(frame))
        .collect();
    assert_eq!(symbols, ["f<g +0x1>(int)", "[unknown]"]);
    assert_eq!((samples[1].head, samples[1].frames.len()), ("prog 2", 0));
}
