//! The engine under its laws, one module per concern. One binary, since linking each takes seconds.

mod common;

mod accept;
mod cap;
mod closing;
mod cubic;
mod dctcp;
mod dctcp_echo;
mod ecn;
mod emit;
mod feedback;
mod handshake;
mod hello;
mod hold;
mod judged;
mod laws;
mod loss;
mod odd;
mod pmtu;
mod police;
mod pools;
mod promise;
mod prr;
mod push;
mod repair;
mod reports;
mod restart;
mod rounding;
mod rtt;
mod shadow;
mod sharing;
mod split;
mod tracking;
mod underlays;
mod undo;
mod window;
