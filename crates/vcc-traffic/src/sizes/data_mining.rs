//! Flow sizes of a data-mining cluster (Greenberg et al., VL2, SIGCOMM 2009, figure 2), with the
//! points that simulators commonly use.

use super::Point;

pub(super) const POINTS: &[Point] = &[
    (0, 0),
    (180, 10),
    (216, 20),
    (560, 30),
    (900, 40),
    (1_100, 50),
    (1_870, 60),
    (3_160, 70),
    (10_000, 80),
    (400_000, 90),
    (3_160_000, 95),
    (100_000_000, 98),
    (1_000_000_000, 100),
];
