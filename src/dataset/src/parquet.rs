//! Apache Parquet: one file per table and recording, in folders that name the partition. The file name is the id of the
//! recording: host, time of its first sample in nanoseconds, and size of its data in bytes.
//!
//! ```text
//! DIR/samples/host=web1/date=2026-11-23/web1-5120034-83121.parquet
//! DIR/frames/host=web1/date=2026-11-23/web1-5120034-83121.parquet
//! ```
//!
//! Recordings of many hosts thus form one data set with the columns `host` and `date`, which come from the path (the
//! naming of Hive). Number columns are INT64, unsigned ones with the logical type UINT_64. Format:
//! `parquet-format/README.md` of the Apache project.

mod columns;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use ::parquet::basic::{Compression, Encoding, IntType, LogicalType, Repetition, Type as Physical};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnPath, Type};

use self::columns::ColumnBuffer;
use crate::{Column, ColumnKind, Dataset, SCHEMA_VERSION, Table};

/// Rows of a row group, which a reader decodes as a unit and a writer keeps in memory.
const GROUP_ROWS: usize = 1 << 18;
/// Columns of numbers that are stored as differences, without a dictionary.
const DELTA_COLUMNS: [&str; 4] = ["time", "wall_time", "stack", "frame"];

/// The path of a table's file below the folder of the data set. `date` is the day of the recording, `2026-11-23`.
#[must_use]
pub fn path(table: &Table, dataset: &Dataset<'_>, date: &str) -> PathBuf {
    let info = &dataset.recording;
    let host = if info.host.is_empty() {
        "unknown"
    } else {
        &info.host
    };
    let mut path = PathBuf::from(table.name);
    path.push(format!("host={}", escaped(host)));
    path.push(format!("date={}", escaped(date)));
    path.push(format!("{}.parquet", escaped(&info.id)));
    path
}

/// Text as part of a file name: bytes other than ASCII letters, digits, `-`, `_` and `.` become `%XX`, as in Hive. So does a
/// leading dot, since the host's name comes from the recording and may be `../..`. A result longer than [`MAX_NAME`] is
/// truncated, and ends with a hash of the text.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'.' if index == 0 => escaped.push_str("%2E"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                escaped.push(byte.into())
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    if escaped.len() > MAX_NAME {
        let hash = format!("-{:016x}", stable_hash(text.as_bytes()));
        let mut end = MAX_NAME - hash.len();
        // An escaped byte is kept or dropped as a whole.
        let last = escaped.get(..end).and_then(|kept| kept.rfind('%'));
        end = last.filter(|last| last + 3 > end).unwrap_or(end);
        escaped.truncate(end);
        escaped.push_str(&hash);
    }
    escaped
}

/// Maximum length of a text in a file name, in bytes: a whole name has at most 255.
const MAX_NAME: usize = 200;

/// The 64-bit FNV-1a hash. It must not change between versions: long file names contain it.
fn stable_hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Writes one table.
///
/// # Errors
///
/// Errors of `out`.
pub fn write<W: Write + Send>(table: &Table, dataset: &Dataset<'_>, out: W) -> io::Result<()> {
    write_groups(table, dataset, out, GROUP_ROWS)
}

/// Writes one table in row groups of this size.
pub(crate) fn write_groups<W: Write + Send>(
    table: &Table,
    dataset: &Dataset<'_>,
    out: W,
    group_rows: usize,
) -> io::Result<()> {
    let schema = Arc::new(schema(table).map_err(io_error)?);
    let properties = Arc::new(properties(table));
    let mut writer = SerializedFileWriter::new(out, schema, properties).map_err(io_error)?;
    let mut buffers: Vec<ColumnBuffer> = table
        .columns
        .iter()
        .map(|column| ColumnBuffer::new(column.kind))
        .collect();
    let mut rows = 0;
    table.rows(dataset, &mut |row| {
        for (buffer, cell) in buffers.iter_mut().zip(row) {
            buffer.push(*cell);
        }
        rows += 1;
        if rows % group_rows == 0 {
            flush(&mut writer, &mut buffers).map_err(io_error)?;
        }
        Ok(())
    })?;
    if rows % group_rows != 0 {
        flush(&mut writer, &mut buffers).map_err(io_error)?;
    }
    writer.close().map_err(io_error)?;
    Ok(())
}

/// Writes the buffered rows as a row group.
fn flush<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    buffers: &mut [ColumnBuffer],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for buffer in buffers {
        if let Some(mut chunk) = group.next_column()? {
            buffer.write(chunk.untyped())?;
            chunk.close()?;
        }
    }
    group.close()?;
    Ok(())
}

fn schema(table: &Table) -> Result<Type, ParquetError> {
    let fields: Result<Vec<_>, ParquetError> = table
        .columns
        .iter()
        .map(|column| Ok(Arc::new(field(column)?)))
        .collect();
    Type::group_type_builder(table.name)
        .with_fields(fields?)
        .build()
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind {
        ColumnKind::Signed => (Physical::INT64, None),
        ColumnKind::Unsigned => (
            Physical::INT64,
            Some(LogicalType::Integer(IntType {
                bit_width: 64,
                is_signed: false,
            })),
        ),
        ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnKind::Flag => (Physical::BOOLEAN, None),
    };
    Type::primitive_type_builder(column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

fn properties(table: &Table) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("rperf version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "rperf.schema".to_owned(),
            SCHEMA_VERSION.to_string(),
        )]));
    for column in table
        .columns
        .iter()
        .filter(|column| DELTA_COLUMNS.contains(&column.name))
    {
        let path = ColumnPath::from(column.name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

/// The I/O error that the library wraps, if any; otherwise the library's own error.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_cannot_leave_the_folder() {
        assert_eq!(escaped("../../etc"), "%2E.%2F..%2Fetc");
        assert_eq!(escaped("web-1.example_b"), "web-1.example_b");
        assert_eq!(escaped("a b=ü"), "a%20b%3D%C3%BC");
    }

    #[test]
    fn long_names_are_truncated_and_end_with_a_hash() {
        assert_eq!(escaped(&"x".repeat(200)), "x".repeat(200));
        let long = ["a", "b"].map(|end| escaped(&("x".repeat(300) + end)));
        assert_ne!(long[0], long[1]);
        // The hash takes 17 of the 200 bytes.
        for name in &long {
            assert_eq!((name.len(), &name[..183]), (200, &*"x".repeat(183)));
        }
        // The hash of a published test vector.
        assert_eq!(stable_hash(b"foobar"), 0x8594_4171_f739_67e8);
        // The limit is before, after one and after two characters of a `%20`, which is then dropped as a whole.
        for shift in 0..3 {
            let name = escaped(&("x".repeat(shift) + &" ".repeat(100)));
            let (kept, _) = name.split_once('-').unwrap();
            assert!(name.len() <= 200 && kept.ends_with("%20"), "{name}");
        }
    }
}
