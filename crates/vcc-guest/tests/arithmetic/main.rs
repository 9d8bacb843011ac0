//! Each congestion control's arithmetic against its RFC or paper, compiled from the lines that the
//! kernel's programs inline.

mod dctcp;
mod highspeed;
mod illinois;
mod native;
mod vegas;
