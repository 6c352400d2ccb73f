//! The same table in every output format. Its last row has only the first cell; `Cell::share(1, 3)` is one of three, in percent.

use super::*;
use crate::terminal::Csi;

fn table() -> Table {
    let columns = [
        Column::left("task"),
        Column::right("share").fixed(8),
        Column::right("bytes"),
    ];
    let mut table = Table::new(columns);
    table.push([
        "a, \"b\"".into(),
        Cell::share(1, 3),
        Cell::count(1500, "1.5K"),
    ]);
    table.push(["é".into(), Cell::share(1, 1000), Cell::from(7_u64)]);
    table.push(["none".into()]);
    table
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("writing to memory succeeds");
    String::from_utf8(out).expect("text")
}

#[test]
fn columns_fit_their_longest_cell_or_have_their_width() {
    let text = written(|out| table().write_text(out, TextStyle::PLAIN));
    let expected = "\
# task       share  bytes
  a, \"b\"    33.33%   1.5K
  é          0.10%      7
  none                   
";
    assert_eq!(text, expected);
}

/// A rule is as long as its column's fixed width (the column titled `n`), or as the title if the title is longer.
#[test]
fn a_rule_covers_the_width_and_the_title() {
    let style = TextStyle {
        rule: true,
        ..TextStyle::PLAIN
    };
    let columns = [
        Column::left("a longer title").fixed(3),
        Column::right("n").fixed(2),
    ];
    let text = written(|out| TextTable::new(&columns, style).write_titles(out));
    assert_eq!(text, "# a longer title   n\n# ..............  ..\n#\n");
}

/// The colour includes the blanks before a share. Small shares have no colour.
#[test]
fn shares_are_coloured_with_their_blanks() {
    let style = TextStyle {
        // Colours on; the plain introducer is ESC [ itself.
        colors: Some(Csi::PLAIN),
        ..TextStyle::PLAIN
    };
    let text = written(|out| table().write_rows(out, style));
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("  a, \"b\"  \x1b[31m  33.33%\x1b[m   1.5K")
    );
    assert_eq!(lines.next(), Some("  é          0.10%      7"));
}

/// The separator within a cell becomes a dot. With an empty separator, the cells are joined unchanged.
#[test]
fn separated_cells_lose_their_separators() {
    let (with_titles, without_titles) = (true, false);
    let text = written(|out| table().write_separated(out, ",", with_titles));
    let expected = "# task,share,bytes\na. \"b\",33.33%,1.5K\né,0.10%,7\nnone,,\n";
    assert_eq!(text, expected);
    let joined = written(|out| table().write_separated(out, "", without_titles));
    assert_eq!(joined.lines().next(), Some("a, \"b\"33.33%1.5K"));
}

#[test]
fn csv_quotes_texts_and_keeps_numbers() {
    let text = written(|out| table().write_csv(out));
    let expected = "task,share,bytes\n\"a, \"\"b\"\"\",33.333333333333336,1500\né,0.1,7\nnone,,\n";
    assert_eq!(text, expected);
}

#[test]
fn json_is_an_array_of_objects() {
    let text = written(|out| table().write_json(out));
    let first = r#"{"task":"a, \"b\"","share":33.333333333333336,"bytes":1500},"#;
    assert_eq!(
        text.lines().nth(1),
        Some(first),
        "in the order of the columns"
    );
    let rows: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["task"], "a, \"b\"");
    assert_eq!(rows[0]["bytes"], 1500);
    assert_eq!(rows[1]["share"], 0.1);
    assert!(rows[2]["share"].is_null());
}
