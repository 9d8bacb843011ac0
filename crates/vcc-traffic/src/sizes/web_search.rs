//! Flow sizes of a web-search cluster (Alizadeh et al., DCTCP, SIGCOMM 2010, figure 4), with the
//! points that simulators commonly use.

use super::Point;

pub(super) const POINTS: &[Point] = &[
    (0, 0),
    (10_000, 15),
    (20_000, 20),
    (30_000, 30),
    (50_000, 40),
    (80_000, 53),
    (200_000, 60),
    (1_000_000, 70),
    (2_000_000, 80),
    (5_000_000, 90),
    (10_000_000, 97),
    (30_000_000, 100),
];
