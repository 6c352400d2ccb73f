//! Checks that a text is well-formed XML, as far as the names that rperf inserts, such as those of symbols, can break
//! it (XML 1.0, sections 2.2, 2.7, 3.1 and 4.1).

/// The first fault of a document; `None` if none is found.
pub(crate) fn fault(text: &str) -> Option<String> {
    let is_wrong = |c: &char| matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}');
    if let Some(wrong) = text.chars().find(is_wrong) {
        return Some(format!("the character {wrong:?}"));
    }
    let mut open = Vec::new();
    let mut rest = text;
    while let Some((before, markup)) = rest.split_once('<') {
        if let Some(wrong) = invalid_reference(before) {
            return Some(format!("the reference {wrong:?}"));
        }
        // CDATA sections, comments, and the prolog.
        let skipped = [("![CDATA[", "]]>"), ("!--", "-->"), ("?", "?>"), ("!", ">")];
        if let Some((_, end)) = skipped.iter().find(|(start, _)| markup.starts_with(start)) {
            let Some((_, after)) = markup.split_once(end) else {
                return Some(format!("a section without the end {end}"));
            };
            rest = after;
            continue;
        }
        let Some((tag, after)) = markup.split_once('>') else {
            return Some("a tag without end".to_owned());
        };
        if let Some(wrong) = invalid_reference(tag) {
            return Some(format!("the reference {wrong:?}"));
        }
        let name = tag.split(char::is_whitespace).next().unwrap_or_default();
        match tag.strip_prefix('/') {
            Some(closed) if open.pop() == Some(closed) => {}
            Some(closed) => return Some(format!("the tag </{closed}> closes another")),
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
        rest = after;
    }
    if let Some(wrong) = invalid_reference(rest) {
        return Some(format!("the reference {wrong:?}"));
    }
    open.pop()
        .map(|tag| format!("the tag <{tag}> is not closed"))
}

/// The first ampersand that begins neither a character reference nor one to a predefined entity, with the text after it.
fn invalid_reference(text: &str) -> Option<String> {
    let known = ["amp;", "lt;", "gt;", "quot;", "apos;", "#"];
    let mut after = text.split('&').skip(1);
    let wrong = after.find(|next| !known.iter().any(|name| next.starts_with(name)));
    wrong.map(|next| format!("&{}", next.chars().take(9).collect::<String>()))
}

#[test]
fn malformed_documents_are_found() {
    let valid = "<?xml version=\"1.0\"?><svg a='b'>\n<!-- < --><g>&lt;x&#39;<![CDATA[ a < b && c ]]></g><rect/></svg>\n";
    assert_eq!(fault(valid), None);
    for (wrong, why) in [
        ("<svg>a & b</svg>", "reference"),
        ("<svg a='&x;'/>", "reference"),
        ("<svg><title>a <b> c</title></svg>", "closes another"),
        ("<svg>\u{1b}</svg>", "character"),
        ("<svg>a < b</svg", "end"),
        ("<svg><!-- a</svg>", "without the end -->"),
        ("<svg>", "not closed"),
    ] {
        assert!(
            fault(wrong).is_some_and(|fault| fault.contains(why)),
            "{wrong}"
        );
    }
}
