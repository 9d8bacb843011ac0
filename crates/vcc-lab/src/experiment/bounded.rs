//! Numbers that know their bounds, so that one outside is refused where it stands in the file.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

macro_rules! bounded {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $least:literal to $most:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name($type);

        impl $name {
            pub fn get(self) -> $type {
                self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let value = <$type>::deserialize(from)?;
                if ($least..=$most).contains(&value) {
                    return Ok(Self(value));
                }
                Err(D::Error::custom(format!("{value} is not within {} and {}", $least, $most)))
            }
        }
    )* };
}

bounded! {
    /// Up to 100 Gbit/s, of which not every backend carries all.
    Mbps: f64 = 0.1 to 100_000.0;
    /// From the least that IPv6 takes (RFC 8200, 5) to what switches for jumbo frames carry.
    MtuBytes: u16 = 1280 to 9216;
    DelayUs: u64 = 0 to 1_000_000;
    /// The most hosts that one machine carries.
    Count: u32 = 0 to 250;
    Workers: u32 = 1 to 256;
    /// Requests that a server makes of one kind.
    Calls: u32 = 1 to 1_000;
    /// A part of all, for any sum of the parts.
    Share: u32 = 1 to 1_000_000;
    /// Switches have powers of two from 1/128 to 8.
    Alpha: f64 = 0.001 to 1000.0;
    Segs: u32 = 1 to 65_535;
    Bytes: u32 = 1 to 1_073_741_824;
    /// Connections between the same two addresses, so each takes a source port; Linux has about
    /// 28,000 ephemeral ports.
    WireFlows: u32 = 1 to 20_000;
    /// A driver domain's buffer, which takes at least a few super-segments.
    Kib: u32 = 64 to 1_048_576;
    Ms: u32 = 1 to 60_000;
    /// Sampling more often would take more time than the traffic.
    IntervalUs: u64 = 100 to 60_000_000;
    Phases: u32 = 1 to 100;
    Percent: u32 = 0 to 100;
    /// 0 is every frame; a card's driver takes no more than some hundred.
    ModerationUs: u64 = 0 to 1000;
    /// CPU time per event.
    CpuUs: u64 = 0 to 100_000;
}

impl Default for MtuBytes {
    fn default() -> Self {
        Self(1500)
    }
}

impl Count {
    pub const NONE: Self = Self(0);
}

impl Default for Calls {
    fn default() -> Self {
        Self(1)
    }
}

impl Ms {
    /// A time slice.
    pub const XENS: Self = Self(30);
}

impl CpuUs {
    pub const NONE: Self = Self(0);
}

impl Percent {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self(100);
}
