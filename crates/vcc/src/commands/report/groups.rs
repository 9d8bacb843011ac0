//! The sums of records.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use serde::Serialize;
use vcc_command::table::{Align, Table};
use vcc_daemon::{End, Record};
use vcc_view::units;

/// What happened within an hour. Bytes are spread evenly over the time of a connection, and the rest counts at
/// its end.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Hour {
    pub connections: u64,
    pub acked_bytes: f64,
    pub retransmissions: f64,
    pub marks: f64,
}

#[derive(Default)]
struct Group {
    by_hour: BTreeMap<i64, Hour>,
    connections: u64,
    forgotten: u64,
    unused: u64,
    acked_bytes: u64,
    segments: f64,
    marks: f64,
    reductions: f64,
    retransmissions: f64,
    drops: f64,
    srtt_us: Vec<f32>,
    fabric_us: Vec<f32>,
    guest_us: Vec<f32>,
    fabric_worst_us: Option<f64>,
    guest_worst_us: Option<f64>,
    lasted_s: f64,
    /// In seconds.
    limited_s: BTreeMap<String, f64>,
}

/// Records by name.
pub struct Groups {
    groups: HashMap<String, Group>,
    /// The first have lost most.
    worst: Vec<(String, Record)>,
    most_worst: usize,
}

#[derive(Serialize)]
pub struct Report {
    pub groups: Vec<Sums>,
    pub worst: Vec<Worst>,
}

/// Of the records of one name.
#[derive(Serialize)]
pub struct Sums {
    pub name: String,
    pub connections: u64,
    /// Of which no end was seen.
    pub forgotten: u64,
    /// On which nothing was sent.
    pub unused: u64,
    pub acked_bytes: u64,
    pub marks: f64,
    pub reductions: f64,
    pub retransmissions: f64,
    /// Of the segments that the bytes fill.
    pub retransmitted_share: Option<f64>,
    /// By vcc.
    pub drops: f64,
    /// Quantiles over connections, each of which counts once with a value of its own: the samples of all
    /// together are not known.
    pub srtt_us: Option<f64>,
    pub srtt_p99_us: Option<f64>,
    pub fabric_delay_us: Option<f64>,
    pub fabric_delay_p99_us: Option<f64>,
    pub guest_delay_us: Option<f64>,
    pub guest_delay_p99_us: Option<f64>,
    /// The longest of all.
    pub fabric_worst_us: Option<f64>,
    pub guest_worst_us: Option<f64>,
    /// Shares of the time of connections that were seen for longer than a second.
    pub limited_by: BTreeMap<String, f64>,
    /// By the start of the hour, in seconds since 1970.
    pub hours: BTreeMap<i64, Hour>,
}

#[derive(Serialize)]
pub struct Worst {
    pub group: String,
    #[serde(flatten)]
    pub record: Record,
}

pub const HOUR_S: i64 = 3600;
/// The bytes of a connection that lasted longer count in the last week.
const SPREAD_MAX_S: f64 = 7.0 * 24.0 * 3600.0;
/// Of records without an MSS.
const MSS_BYTES: f64 = 1448.0;

impl Groups {
    /// Keeps so many of the worst connections.
    pub fn new(most_worst: usize) -> Self {
        Self { groups: HashMap::new(), worst: Vec::new(), most_worst }
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub fn add(&mut self, name: String, record: Record) {
        self.groups.entry(name.clone()).or_default().add(&record);
        let place = self.worst.partition_point(|(_, other)| lost(other) >= lost(&record));
        if place < self.most_worst && lost(&record) > 0.0 {
            self.worst.insert(place, (name, record));
            self.worst.truncate(self.most_worst);
        }
    }

    /// The group with the most bytes first.
    pub fn report(self) -> Report {
        let mut groups: Vec<Sums> =
            self.groups.into_iter().map(|(name, group)| group.sums(name)).collect();
        groups.sort_by(|one, other| {
            other.acked_bytes.cmp(&one.acked_bytes).then_with(|| one.name.cmp(&other.name))
        });
        let worst = self.worst.into_iter().map(|(group, record)| Worst { group, record });
        Report { groups, worst: worst.collect() }
    }
}

fn hour_of(unix_s: f64) -> i64 {
    (unix_s as i64).div_euclid(HOUR_S) * HOUR_S
}

/// In UTC.
pub fn time(unix_s: i64) -> String {
    let at = Timestamp::from_second(unix_s).unwrap_or_default();
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// Segments that were sent again, or dropped by vcc.
fn lost(record: &Record) -> f64 {
    record.retransmissions + record.drops
}

impl Group {
    fn add(&mut self, record: &Record) {
        self.spread(record);
        let hour = self.by_hour.entry(hour_of(record.ended_unix_s)).or_default();
        hour.connections += 1;
        hour.retransmissions += record.retransmissions;
        hour.marks += record.marks;
        self.connections += 1;
        self.forgotten += u64::from(record.end == End::Forgotten);
        self.unused += u64::from(record.end == End::Unused);
        self.acked_bytes = self.acked_bytes.saturating_add(record.acked_bytes);
        let mss_bytes = record.mss_bytes.filter(|bytes| *bytes >= 1.0).unwrap_or(MSS_BYTES);
        self.segments += (record.acked_bytes as f64 / mss_bytes).ceil();
        self.marks += record.marks;
        self.reductions += record.reductions;
        self.retransmissions += record.retransmissions;
        self.drops += record.drops;
        for (to, us) in [
            (&mut self.srtt_us, record.srtt_us),
            (&mut self.fabric_us, record.fabric_delay_us),
            (&mut self.guest_us, record.guest_delay_us),
        ] {
            to.extend(us.map(|us| us as f32));
        }
        for (to, us) in [
            (&mut self.fabric_worst_us, record.fabric_worst_us),
            (&mut self.guest_worst_us, record.guest_worst_us),
        ] {
            *to = to.iter().copied().chain(us).reduce(f64::max);
        }
        let lasted_s =
            record.lasted_s.filter(|_| !record.limited_by.is_empty()).unwrap_or_default();
        self.lasted_s += lasted_s;
        for (limit, share) in &record.limited_by {
            *self.limited_s.entry(limit.clone()).or_default() += share * lasted_s;
        }
    }

    fn spread(&mut self, record: &Record) {
        let end_s = record.ended_unix_s;
        let lasted_s = record.lasted_s.unwrap_or_default().min(SPREAD_MAX_S);
        let begin_s = end_s - lasted_s;
        for hour in (hour_of(begin_s)..=hour_of(end_s)).step_by(HOUR_S as usize) {
            let (from_s, to_s) = (begin_s.max(hour as f64), end_s.min((hour + HOUR_S) as f64));
            let share = if lasted_s > 0.0 { (to_s - from_s) / lasted_s } else { 1.0 };
            self.by_hour.entry(hour).or_default().acked_bytes += share * record.acked_bytes as f64;
        }
    }

    fn sums(mut self, name: String) -> Sums {
        let limited = self.limited_s.into_iter().filter(|_| self.lasted_s > 0.0);
        Sums {
            name,
            connections: self.connections,
            forgotten: self.forgotten,
            unused: self.unused,
            acked_bytes: self.acked_bytes,
            marks: self.marks,
            reductions: self.reductions,
            retransmissions: self.retransmissions,
            retransmitted_share: (self.segments > 0.0)
                .then(|| self.retransmissions / (self.segments + self.retransmissions)),
            drops: self.drops,
            srtt_us: quantile(&mut self.srtt_us, 0.5),
            srtt_p99_us: quantile(&mut self.srtt_us, 0.99),
            fabric_delay_us: quantile(&mut self.fabric_us, 0.5),
            fabric_delay_p99_us: quantile(&mut self.fabric_us, 0.99),
            guest_delay_us: quantile(&mut self.guest_us, 0.5),
            guest_delay_p99_us: quantile(&mut self.guest_us, 0.99),
            fabric_worst_us: self.fabric_worst_us,
            guest_worst_us: self.guest_worst_us,
            limited_by: limited.map(|(limit, s)| (limit, s / self.lasted_s)).collect(),
            hours: self.by_hour,
        }
    }
}

fn quantile(values: &mut [f32], share: f64) -> Option<f64> {
    values.sort_by(f32::total_cmp);
    let at = (share * values.len() as f64) as usize;
    values.get(at.min(values.len().saturating_sub(1))).map(|value| f64::from(*value))
}

impl Sums {
    /// What limited its connections for most of their time, and for how much of it.
    pub fn mostly(&self) -> Option<(&str, f64)> {
        let most = self.limited_by.iter().max_by(|one, other| one.1.total_cmp(other.1))?;
        Some((most.0, *most.1))
    }

    /// Its name, and its figures as text.
    pub fn cells(&self) -> [String; 12] {
        let time = |us: Option<f64>| us.map_or("-".into(), units::duration);
        [
            self.name.clone(),
            self.connections.to_string(),
            units::bytes(self.acked_bytes as f64),
            self.marks.to_string(),
            self.retransmissions.to_string(),
            percent(self.retransmitted_share),
            time(self.srtt_us),
            time(self.srtt_p99_us),
            time(self.fabric_delay_us),
            time(self.fabric_delay_p99_us),
            time(self.guest_delay_us),
            time(self.guest_delay_p99_us),
        ]
    }

    /// Of each kind of delay: its name, the median and 99 % of the connections, and the longest of all.
    pub fn delays(&self) -> [[String; 4]; 3] {
        let time = |us: Option<f64>| us.map_or("-".into(), units::duration);
        let row = |name: &str, median, p99, longest| {
            [name.to_owned(), time(median), time(p99), time(longest)]
        };
        [
            row("Round trip (SRTT)", self.srtt_us, self.srtt_p99_us, None),
            row(
                "Fabric delay",
                self.fabric_delay_us,
                self.fabric_delay_p99_us,
                self.fabric_worst_us,
            ),
            row("Guest delay", self.guest_delay_us, self.guest_delay_p99_us, self.guest_worst_us),
        ]
    }

    fn mostly_text(&self) -> String {
        let text = |(limit, share)| format!("{limit} {}", percent(Some(share)));
        self.mostly().map_or("-".into(), text)
    }
}

pub fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{:.2} %", share * 100.0))
}

impl Report {
    /// The first and the last hour in which something happened, by their beginnings.
    pub fn hours(&self) -> (i64, i64) {
        let hours = || self.groups.iter().flat_map(|sums| sums.hours.keys().copied());
        (hours().min().unwrap_or_default(), hours().max().unwrap_or_default())
    }

    pub fn range(&self) -> String {
        let (first, last) = self.hours();
        format!("Connections from {} to {}.", time(first), time(last + HOUR_S))
    }

    pub fn text(&self) -> String {
        let mut table = Table::new([
            ("NAME", Align::Left),
            ("CONNECTIONS", Align::Right),
            ("ACKED", Align::Right),
            ("MARKS", Align::Right),
            ("RETRANS", Align::Right),
            ("OF-SEGMENTS", Align::Right),
            ("SRTT", Align::Right),
            ("SRTT-P99", Align::Right),
            ("FABRIC", Align::Right),
            ("FABRIC-P99", Align::Right),
            ("GUEST", Align::Right),
            ("GUEST-P99", Align::Right),
            ("MOSTLY", Align::Left),
        ]);
        for sums in &self.groups {
            table.row(sums.cells().into_iter().chain([sums.mostly_text()]));
        }
        let mut text = table.render();
        text += &format!("{}\n", self.range());
        let sum = |of: fn(&Sums) -> u64| self.groups.iter().map(of).sum::<u64>();
        for (count, what) in [
            (sum(|sums| sums.unused), "nothing was sent, as where a peer refuses them"),
            (sum(|sums| sums.forgotten), "no end was seen"),
        ] {
            if count > 0 {
                text += &format!("of {count} of them, {what}\n");
            }
        }
        if !self.worst.is_empty() {
            text += "\nThe connections that lost most:\n";
            let mut table = Table::new([
                ("GROUP", Align::Left),
                ("GUEST", Align::Left),
                ("PEER", Align::Left),
                ("ACKED", Align::Right),
                ("LASTED", Align::Right),
                ("RETRANS", Align::Right),
                ("DROPS", Align::Right),
                ("MARKS", Align::Right),
                ("SRTT", Align::Right),
            ]);
            self.worst.iter().for_each(|worst| table.row(worst.cells()));
            text += &table.render();
        }
        text
    }
}

impl Worst {
    pub fn cells(&self) -> [String; 9] {
        let Self { group, record } = self;
        let time = |us: Option<f64>| us.map_or("-".into(), units::duration);
        [
            group.clone(),
            record.guest.clone(),
            record.peer.clone(),
            units::bytes(record.acked_bytes as f64),
            time(record.lasted_s.map(|s| s * 1e6)),
            record.retransmissions.to_string(),
            record.drops.to_string(),
            record.marks.to_string(),
            time(record.srtt_us),
        ]
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Of a connection that lasted ten seconds, and lost a segment of each hundred.
    pub fn record(tenant: &str, acked_bytes: u64) -> Record {
        let text = |text: &str| Some(text.to_owned());
        Record {
            ended_unix_s: 7_300.5,
            end: End::Closed,
            lasted_s: Some(10.0),
            is_whole: true,
            port: "tap1".into(),
            tenant: text(tenant),
            rule: text("default"),
            mode: text("enforce"),
            underlay: text("dctcp"),
            guest: "10.0.0.1:40000".into(),
            peer: "[2001:db8::1]:80".into(),
            ecn_guest: None,
            ecn_fabric: None,
            mss_bytes: Some(1000.0),
            acked_bytes,
            marks: 3.0,
            reductions: 2.0,
            retransmissions: (acked_bytes / 100_000) as f64,
            needless: 0.0,
            drops: 0.0,
            policed: 0.0,
            srtt_us: Some(acked_bytes as f64 / 1000.0),
            rtt_min_us: None,
            fabric_delay_us: Some(50.0),
            fabric_worst_us: None,
            guest_delay_us: None,
            guest_worst_us: None,
            limited_by: BTreeMap::from([("underlay".into(), 0.75), ("guest".into(), 0.25)]),
        }
    }

    /// An average of averages by bytes would hide the many by the few.
    #[test]
    fn delays_are_quantiles_over_connections_and_the_longest_wait() {
        let delayed = |us: f64, worst_us: Option<f64>| Record {
            fabric_delay_us: Some(us),
            fabric_worst_us: worst_us,
            ..record("acme", 1_000)
        };
        let mut all: Vec<Record> = (1..=99).map(|us| delayed(f64::from(us), None)).collect();
        all.push(delayed(5_000.0, Some(70_000.0)));
        all.push(delayed(40.0, Some(900.0)));
        let report = groups(all, 0).report();
        let [_, fabric, guest] = report.groups[0].delays();
        assert_eq!(fabric[1..], ["50 us", "99 us", "70.0 ms"]);
        assert_eq!(guest[1..], ["-", "-", "-"]);
    }

    fn groups(records: Vec<Record>, most_worst: usize) -> Groups {
        let mut groups = Groups::new(most_worst);
        for record in records {
            groups.add(record.tenant.clone().expect("a tenant"), record);
        }
        groups
    }

    #[test]
    fn records_are_summed_by_name() {
        let late = Record { ended_unix_s: 11_000.0, ..record("acme", 100_000) };
        let short = Record { limited_by: BTreeMap::new(), lasted_s: None, ..record("acme", 0) };
        let records = vec![record("other", 50_000), record("acme", 300_000), late, short];
        let report = groups(records, 5).report();
        let [acme, other] = &report.groups[..] else { panic!("two groups") };
        assert_eq!((&*acme.name, acme.connections, acme.acked_bytes), ("acme", 3, 400_000));
        assert_eq!((acme.retransmissions, acme.marks), (4.0, 9.0));
        assert_eq!(acme.retransmitted_share, Some(4.0 / 404.0));
        assert_eq!((acme.srtt_us, acme.srtt_p99_us), (Some(100.0), Some(300.0)));
        assert_eq!((acme.fabric_delay_us, acme.guest_delay_us), (Some(50.0), None));
        assert_eq!(acme.mostly(), Some(("underlay", 0.75)));
        let hours: Vec<_> = acme.hours.iter().map(|(at, hour)| (*at, hour.connections)).collect();
        assert_eq!(hours, [(7_200, 2), (10_800, 1)]);
        assert_eq!((&*other.name, other.forgotten, other.unused), ("other", 0, 0));
        // 100,000 bytes of the last one are within 200 s of an hour.
        let late = Record { lasted_s: Some(400.0), ..record("acme", 100_000) };
        let late = Record { ended_unix_s: 11_000.0, ..late };
        let hours = groups(vec![late], 0).report().groups.remove(0).hours;
        let bytes: Vec<f64> = hours.values().map(|hour| hour.acked_bytes).collect();
        assert_eq!(bytes, [50_000.0, 50_000.0]);
        let text = report.text();
        assert!(
            text.contains("Connections from 1970-01-01 02:00 UTC to 1970-01-01 04:00 UTC."),
            "{text}"
        );
        assert!(text.contains("acme             3   391 KiB"), "{text}");
        assert!(text.contains("underlay 75.00 %"), "{text}");
    }

    #[test]
    fn the_worst_connections_come_first() {
        let bytes = [100_000, 900_000, 500_000, 0, 900_000];
        let records = bytes.map(|bytes| record("acme", bytes)).into();
        let report = groups(records, 3).report();
        let lost: Vec<f64> = report.worst.iter().map(|it| it.record.retransmissions).collect();
        assert_eq!(lost, [9.0, 9.0, 5.0]);
        assert!(groups(vec![record("acme", 0)], 3).report().worst.is_empty());
        assert!(groups(vec![record("acme", 100_000)], 0).report().worst.is_empty());
    }
}
