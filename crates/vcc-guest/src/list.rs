//! The congestion controls of `guest/`.

/// A compiled congestion control.
#[derive(Debug)]
pub struct CongestionControl {
    name: &'static str,
    object: &'static [u8],
    /// The object for kernels in which sending that resumes has a hook of its own.
    object_with_tx_start: Option<&'static [u8]>,
}

impl CongestionControl {
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn object(&self, has_tx_start: bool) -> &'static [u8] {
        match self.object_with_tx_start {
            Some(object) if has_tx_start => object,
            _ => self.object,
        }
    }

    pub(crate) fn distinguishes_tx_start(&self) -> bool {
        self.object_with_tx_start.is_some()
    }
}

impl PartialEq for CongestionControl {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"))
    };
}

macro_rules! congestion_controls {
    ($($name:literal $(or $with_tx_start:literal)?;)*) => {
        const NAMES: &[&str] = &[$($name),*];
        static KNOWN: &[CongestionControl] = &[$(CongestionControl {
            name: $name,
            object: object!($name),
            object_with_tx_start: congestion_controls!(@object $($with_tx_start)?),
        }),*];
    };
    (@object) => { None };
    (@object $name:literal) => { Some(object!($name)) };
}

// One line each: guest/NAME.bpf.c defines the struct tcp_congestion_ops NAME, and so does the other file.
congestion_controls! {
    "dctcp";
    "vegas";
    "illinois";
    "highspeed";
    "flood" or "flood_tx_start";
}

/// `flood` in the form whose window depends on what the host reports (guest/flood_channel.h).
pub(crate) static LEASED_FLOOD: CongestionControl = CongestionControl {
    name: "flood",
    object: object!("flood_channel"),
    object_with_tx_start: Some(object!("flood_channel_tx_start")),
};

/// The names of the congestion controls of `guest/`.
pub fn names() -> &'static [&'static str] {
    NAMES
}

pub fn find(name: &str) -> Option<&'static CongestionControl> {
    KNOWN.iter().find(|known| known.name == name)
}
