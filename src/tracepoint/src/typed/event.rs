//! The table of typed events: how an entry becomes a type.

use super::field_type::FieldType;
use crate::{Error, Tracepoint};

/// Declares a typed event: documentation, names of the type and of its layout, the tracepoints that have this shape, and
/// the fields with their types. A field that kernels call otherwise, or called otherwise once, has its names behind `as`,
/// in the order in which they are tried.
///
/// The type gets a method for each field. What the fields' types may be is at [`FieldType`]: a field that some kernels lack
/// is an `Option`; without one of the others nothing can be made of the event.
macro_rules! typed_event {
    (
        $(#[$about:meta])*
        $event:ident($layout:ident) = $($tracepoint:literal)|+ {
            $(
                $(#[$about_field:meta])*
                $field:ident: $kind:ty $(as $($name:literal)|+)?,
            )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        pub struct $event<'r> {
            layout: &'r $layout,
            raw: &'r [u8],
        }

        #[doc = concat!("Where the fields of [`", stringify!($event), "`] lie in raw data.")]
        #[derive(Debug, Clone)]
        pub struct $layout {
            tracepoint: &'static str,
            needs: usize,
            $($field: <$kind as $crate::typed::FieldType>::Reader,)*
        }

        impl $layout {
            /// The tracepoints of this shape, `system:name`.
            pub const TRACEPOINTS: &'static [&'static str] = &[$($tracepoint),+];

            /// Looks the fields up in the description of a tracepoint; `None` if it is another one.
            ///
            /// # Errors
            /// [`Error::NoField`] and [`Error::FieldType`] for fields that every kernel is known to have.
            ///
            /// [`Error::NoField`]: crate::Error::NoField
            /// [`Error::FieldType`]: crate::Error::FieldType
            pub fn resolve(
                described: &$crate::Tracepoint,
            ) -> Result<Option<Self>, $crate::Error> {
                let own = described.name();
                let Some(tracepoint) = Self::TRACEPOINTS.iter().find(|name| **name == own) else {
                    return Ok(None);
                };
                let mut needs = 0;
                $(
                    let $field = $crate::typed::event::look_up::<$kind>(
                        described,
                        $crate::typed::event::typed_event!(@names $field $($($name)|+)?),
                        &mut needs,
                    )?;
                )*
                Ok(Some(Self { tracepoint, needs, $($field,)* }))
            }

            /// The event that `raw`, the raw data of a sample, holds; `None` if they are cut short.
            #[inline]
            #[must_use]
            pub fn read<'r>(&'r self, raw: &'r [u8]) -> Option<$event<'r>> {
                (raw.len() >= self.needs).then_some($event { layout: self, raw })
            }
        }

        impl<'r> $event<'r> {
            /// The tracepoint, `system:name`.
            #[must_use]
            pub fn tracepoint(&self) -> &'static str {
                self.layout.tracepoint
            }

            $(
                $(#[$about_field])*
                #[inline]
                #[must_use]
                pub fn $field(&self) -> <$kind as $crate::typed::FieldType>::Value<'r> {
                    <$kind as $crate::typed::FieldType>::read(&self.layout.$field, self.raw)
                }
            )*
        }

        impl std::fmt::Debug for $event<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = f.debug_struct(self.layout.tracepoint);
                $(shown.field(stringify!($field), &self.$field());)*
                shown.finish()
            }
        }
    };
    (@names $field:ident) => { &[stringify!($field)] };
    (@names $field:ident $($name:literal)|+) => { &[$($name),+] };
}

pub(super) use typed_event;

/// What reads the field that has the first of these `names` that there is. `needs` becomes the length of raw data that the
/// fields read so far take.
pub(super) fn look_up<T: FieldType>(
    described: &Tracepoint,
    names: &'static [&'static str],
    needs: &mut usize,
) -> Result<T::Reader, Error> {
    let reader = T::reader(described, names)?;
    *needs = T::needs(&reader).max(*needs);
    Ok(reader)
}

/// Joins typed events in one type, and their layouts in another.
macro_rules! typed_events {
    ($($event:ident($layout:ident),)+) => {
        /// A typed event, whichever it is.
        #[derive(Debug, Clone, Copy)]
        #[non_exhaustive]
        pub enum TypedEvent<'r> {
            $(
                #[doc = concat!("See [`", stringify!($event), "`].")]
                $event($event<'r>),
            )+
        }

        /// Where the fields of a typed event lie in raw data.
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub enum EventLayout {
            $(
                #[doc = concat!("See [`", stringify!($layout), "`].")]
                $event($layout),
            )+
        }

        impl EventLayout {
            /// Looks the fields of a tracepoint up in its description; `None` if no typed event is declared for it.
            ///
            /// # Errors
            /// [`Error::NoField`] and [`Error::FieldType`] for fields that every kernel is known to have.
            ///
            /// [`Error::NoField`]: crate::Error::NoField
            /// [`Error::FieldType`]: crate::Error::FieldType
            pub fn resolve(
                described: &$crate::Tracepoint,
            ) -> Result<Option<Self>, $crate::Error> {
                $(
                    if let Some(layout) = $layout::resolve(described)? {
                        return Ok(Some(Self::$event(layout)));
                    }
                )+
                Ok(None)
            }

            /// The event that `raw`, the raw data of a sample, holds; `None` if they are cut short.
            #[inline]
            #[must_use]
            pub fn read<'r>(&'r self, raw: &'r [u8]) -> Option<TypedEvent<'r>> {
                match self {
                    $(Self::$event(layout) => layout.read(raw).map(TypedEvent::$event),)+
                }
            }

            /// All tracepoints for which typed events are declared, `system:name`.
            pub fn tracepoints() -> impl Iterator<Item = &'static str> {
                let all: &[&[&'static str]] = &[$($layout::TRACEPOINTS),+];
                all.iter().copied().flatten().copied()
            }
        }
    };
}

pub(super) use typed_events;
