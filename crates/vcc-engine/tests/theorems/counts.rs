/// What came up in a run, or in many.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    pub events: u64,
    /// Events after which guest and native sender sent the same, by equation 16.
    pub equal: u64,
    /// Of these, those at which they sent something.
    pub equal_sent: u64,
    pub reductions: u64,
    pub recoveries: u64,
    pub partial_acks: u64,
    pub timeouts: u64,
    pub restarts: u64,
    pub unused: u64,
    pub duplicates: u64,
    /// Events of the departures: see `Run::compare`.
    pub edge_kept: u64,
    pub repeated: u64,
    pub caught_up: u64,
    pub below: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.events += other.events;
        self.equal += other.equal;
        self.equal_sent += other.equal_sent;
        self.reductions += other.reductions;
        self.recoveries += other.recoveries;
        self.partial_acks += other.partial_acks;
        self.timeouts += other.timeouts;
        self.restarts += other.restarts;
        self.unused += other.unused;
        self.duplicates += other.duplicates;
        self.edge_kept += other.edge_kept;
        self.repeated += other.repeated;
        self.caught_up += other.caught_up;
        self.below += other.below;
    }
}
