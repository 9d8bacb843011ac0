//! To whom a port belongs.

/// What a policy says of a port as a whole, and rules can ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Affiliation<'a> {
    pub tenant: Option<&'a str>,
    /// What distinguishes the port from others of its tenant.
    pub class: Option<&'a str>,
}

impl<'a> From<Option<&'a str>> for Affiliation<'a> {
    /// A tenant's port without a class.
    fn from(tenant: Option<&'a str>) -> Self {
        Self { tenant, class: None }
    }
}
