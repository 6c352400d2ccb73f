//! Errors as Python exceptions.

use std::io;
use std::path::Path;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::{PyErr, PyResult};

/// An `OSError` about a file, with `errno` and `filename` if the system reported an error number: then Python selects the
/// subclass, such as `FileNotFoundError`.
pub(crate) fn file_error(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            PyOSError::new_err((number, system_text(error), path.as_os_str().to_owned()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// An `OSError` of a system call, about `subject`, with `errno` if the system reported an error number.
pub(crate) fn system_error(subject: &str, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, format!("{subject}: {}", system_text(error)))),
        None => PyOSError::new_err(format!("{subject}: {error}")),
    }
}

/// The text of a system error, without the error number.
fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error");
    text.get(..end.unwrap_or(text.len()))
        .unwrap_or_default()
        .to_owned()
}

/// A `ValueError` with this text.
pub(crate) fn value_error(text: impl Into<String>) -> PyErr {
    PyValueError::new_err(text.into())
}

/// Converts an error of another crate to a `ValueError` with the texts of the error and its causes.
pub(crate) fn or_value_error<T>(result: Result<T, impl std::error::Error>) -> PyResult<T> {
    result.map_err(|error| {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let inner_text = inner.to_string();
            // Most messages end with that of their cause.
            if !text.ends_with(&inner_text) {
                text.push_str(": ");
                text.push_str(&inner_text);
            }
            cause = inner.source();
        }
        value_error(text)
    })
}
