//! The macros that declare typed events.

use super::field_type::FieldType;
use crate::{Error, Tracepoint};

/// Declares a typed event: documentation, names of the type and its layout, the tracepoints with
/// these fields, and the fields with their types. If kernels have other names for a field, all its
/// names follow `as`, in the order in which they are tried.
///
/// The event type gets a method for each field. [`FieldType`] lists the possible types of fields: an `Option`
/// for a field that some kernels lack; all other fields are required.
macro_rules! typed_event {
    (
        $(#[$doc:meta])*
        $event:ident($layout:ident) = $($tracepoint:literal)|+ {
            $(
                $(#[$field_doc:meta])*
                $field:ident: $kind:ty $(as $($name:literal)|+)?,
            )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $event<'r> {
            layout: &'r $layout,
            raw: &'r [u8],
        }

        #[doc = concat!("The layout of the fields of [`", stringify!($event), "`] in raw data.")]
        #[derive(Debug, Clone)]
        pub struct $layout {
            pub(super) tracepoint: &'static str,
            min_size: usize,
            $($field: <$kind as $crate::typed::FieldType>::Reader,)*
        }

        impl $layout {
            /// The tracepoints with these fields, `system:name`.
            pub const TRACEPOINTS: &'static [&'static str] = &[$($tracepoint),+];

            /// Resolves the fields by the format of `tracepoint`; `None` if it is not one of
            /// `TRACEPOINTS`.
            ///
            /// # Errors
            /// [`Error::NoField`] and [`Error::FieldType`] for required fields.
            ///
            /// [`Error::NoField`]: crate::Error::NoField
            /// [`Error::FieldType`]: crate::Error::FieldType
            pub fn resolve(
                tracepoint: &$crate::Tracepoint,
            ) -> Result<Option<Self>, $crate::Error> {
                let full_name = tracepoint.name();
                let Some(static_name) = Self::TRACEPOINTS.iter().find(|name| **name == full_name) else {
                    return Ok(None);
                };
                let mut min_size = 0;
                $(
                    let $field = $crate::typed::event::field_reader::<$kind>(
                        tracepoint,
                        $crate::typed::event::typed_event!(@names $field $($($name)|+)?),
                        &mut min_size,
                    )?;
                )*
                Ok(Some(Self { tracepoint: static_name, min_size, $($field,)* }))
            }

            /// Reads the event from `raw`, the raw data of a sample; `None` if it is too short for the required fields. Of a
            /// dynamic field (`__data_loc`), only the word with its offset and size must be there.
            #[inline]
            #[must_use]
            pub fn read<'r>(&'r self, raw: &'r [u8]) -> Option<$event<'r>> {
                (raw.len() >= self.min_size).then_some($event { layout: self, raw })
            }
        }

        impl<'r> $event<'r> {
            /// The tracepoint, `system:name`.
            #[must_use]
            pub fn tracepoint(&self) -> &'static str {
                self.layout.tracepoint
            }

            $(
                $(#[$field_doc])*
                #[inline]
                #[must_use]
                pub fn $field(&self) -> <$kind as $crate::typed::FieldType>::Value<'r> {
                    <$kind as $crate::typed::FieldType>::read(&self.layout.$field, self.raw)
                }
            )*
        }

        impl std::fmt::Debug for $event<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut debug = f.debug_struct(self.layout.tracepoint);
                $(debug.field(stringify!($field), &self.$field());)*
                debug.finish()
            }
        }
    };
    // Internal rules: the names of a field in formats; by default, the name of its method.
    (@names $field:ident) => { &[stringify!($field)] };
    (@names $field:ident $($name:literal)|+) => { &[$($name),+] };
}

pub(super) use typed_event;

/// Creates a reader of the first existing field among `names`. Increases `min_size` to the length of raw data
/// that this field requires, if that length is more.
pub(super) fn field_reader<T: FieldType>(
    tracepoint: &Tracepoint,
    names: &'static [&'static str],
    min_size: &mut usize,
) -> Result<T::Reader, Error> {
    let reader = T::reader(tracepoint, names)?;
    *min_size = T::min_size(&reader).max(*min_size);
    Ok(reader)
}

/// Declares an enum of all typed events, and one of their layouts.
macro_rules! typed_events {
    ($($event:ident($layout:ident),)+) => {
        /// Any typed event.
        #[derive(Debug, Clone, Copy)]
        #[non_exhaustive]
        pub enum TypedEvent<'r> {
            $(
                #[doc = concat!("See [`", stringify!($event), "`].")]
                $event($event<'r>),
            )+
        }

        /// The layout of a typed event's fields in raw data.
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub enum EventLayout {
            $(
                #[doc = concat!("See [`", stringify!($layout), "`].")]
                $event($layout),
            )+
        }

        impl EventLayout {
            /// Resolves the fields of `tracepoint` by its format; `None` if there is no typed event
            /// for it.
            ///
            /// # Errors
            /// [`Error::NoField`] and [`Error::FieldType`] for required fields.
            ///
            /// [`Error::NoField`]: crate::Error::NoField
            /// [`Error::FieldType`]: crate::Error::FieldType
            pub fn resolve(
                tracepoint: &$crate::Tracepoint,
            ) -> Result<Option<Self>, $crate::Error> {
                $(
                    if let Some(layout) = $layout::resolve(tracepoint)? {
                        return Ok(Some(Self::$event(layout)));
                    }
                )+
                Ok(None)
            }

            /// Reads the event from `raw`, the raw data of a sample; `None` if it is too short for the required fields. Of a
            /// dynamic field (`__data_loc`), only the word with its offset and size must be there.
            #[inline]
            #[must_use]
            pub fn read<'r>(&'r self, raw: &'r [u8]) -> Option<TypedEvent<'r>> {
                match self {
                    $(Self::$event(layout) => layout.read(raw).map(TypedEvent::$event),)+
                }
            }

            /// Returns the tracepoint, `system:name`.
            #[must_use]
            pub fn tracepoint(&self) -> &'static str {
                match self {
                    $(Self::$event(layout) => layout.tracepoint,)+
                }
            }

            /// All tracepoints with typed events, `system:name`.
            pub fn tracepoints() -> impl Iterator<Item = &'static str> {
                let all: &[&[&'static str]] = &[$($layout::TRACEPOINTS),+];
                all.iter().copied().flatten().copied()
            }
        }
    };
}

pub(super) use typed_events;
