//! The congestion controls of `guest/`.

/// A compiled congestion control.
#[derive(Debug)]
pub(crate) struct Known {
    pub name: &'static str,
    pub object: &'static [u8],
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

macro_rules! congestion_controls {
    ($($name:literal)*) => {
        const NAMES: &[&str] = &[$($name),*];
        static KNOWN: &[Known] = &[$(Known {
            name: $name,
            object: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")),
        }),*];
    };
}

// One line each: guest/NAME.bpf.c defines the struct tcp_congestion_ops NAME.
congestion_controls! {
    "dctcp"
    "vegas"
    "illinois"
    "highspeed"
    "flood"
}

/// The names of the congestion controls of `guest/`.
pub fn names() -> &'static [&'static str] {
    NAMES
}

pub(crate) fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}
