//! Each congestion control's arithmetic against its RFC or paper, compiled from the headers that
//! the BPF programs inline.

mod dctcp;
mod flood;
mod highspeed;
mod illinois;
mod native;
mod vegas;
