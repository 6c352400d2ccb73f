//! Kernel strings by address (`/sys/kernel/tracing/printk_formats`).

/// Maps addresses of constant kernel strings to their text, for `%s` of a pointer field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrintkFormats {
    strings: Vec<(u64, String)>,
}

impl PrintkFormats {
    /// Parses lines of the form `0xADDRESS : "text\n"`, where `0x`, the quotes and `\n` are optional. Other lines are
    /// skipped. Of several lines with the same address, the first is used.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut strings: Vec<(u64, String)> = text.lines().filter_map(parse_line).collect();
        strings.sort_by_key(|(address, _)| *address);
        strings.dedup_by_key(|(address, _)| *address);
        Self { strings }
    }

    /// The string at exactly `address`.
    #[must_use]
    pub fn get(&self, address: u64) -> Option<&str> {
        let index = self
            .strings
            .binary_search_by_key(&address, |(address, _)| *address)
            .ok()?;
        self.strings.get(index).map(|(_, text)| text.as_str())
    }
}

fn parse_line(line: &str) -> Option<(u64, String)> {
    let (address, text) = line.split_once(':')?;
    let address = address.trim().trim_start_matches("0x");
    // Skips the blank after the colon. As in perf, any other character at this place is skipped, too.
    let text = text.get(1..)?;
    let text = text.strip_prefix('"').unwrap_or(text);
    let text = text.strip_suffix('"').unwrap_or(text);
    let text = text.strip_suffix("\\n").unwrap_or(text);
    Some((u64::from_str_radix(address, 16).ok()?, text.to_owned()))
}
