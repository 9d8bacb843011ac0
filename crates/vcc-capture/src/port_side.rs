//! The sides of a port, and the names of interfaces in a recording of `vcc record`: a port's device, and a
//! side of the port.

/// A side of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    Guest,
    Fabric,
}

impl Face {
    pub const BOTH: [Self; 2] = [Self::Guest, Self::Fabric];

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Guest => Self::Fabric,
            Self::Fabric => Self::Guest,
        }
    }
}

/// A side of a port, which is an interface of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSide<'a> {
    pub device: &'a str,
    pub face: Face,
}

impl<'a> PortSide<'a> {
    /// The interface's name.
    pub fn name(self) -> String {
        format!("{}{}", self.device, ending(self.face))
    }

    /// None if the interface is not of a recording.
    pub fn from_name(name: &'a str) -> Option<Self> {
        Face::BOTH.into_iter().find_map(|face| {
            let device = name.strip_suffix(ending(face)).filter(|device| !device.is_empty())?;
            Some(Self { device, face })
        })
    }
}

/// No name of a device has spaces.
fn ending(face: Face) -> &'static str {
    match face {
        Face::Guest => " (guest side)",
        Face::Fabric => " (fabric side)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for face in Face::BOTH {
            let side = PortSide { device: "tap1", face };
            assert_eq!(PortSide::from_name(&side.name()), Some(side));
        }
        for other in ["", "tap1", "tap1 (guest)", " (guest side)"] {
            assert_eq!(PortSide::from_name(other), None, "{other}");
        }
    }
}
