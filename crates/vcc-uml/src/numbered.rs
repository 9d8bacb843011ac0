//! Enumerations with a protocol's numbers.

macro_rules! numbered {
    (
        $(#[$doc:meta])*
        $visible:vis enum $name:ident {
            $($(#[$variant_doc:meta])* $variant:ident = $number:literal,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u32)]
        $visible enum $name { $($(#[$variant_doc])* $variant = $number),* }

        impl $name {
            /// None for an unknown number.
            fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use numbered;
