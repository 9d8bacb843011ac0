//! The card, as guests and front ends use it, honest or not.

mod broken;
mod channel;
mod frames;
mod front_ends;
mod hold;
mod host;
mod moving;
mod relay;
mod snoop;
mod talk;

use vcc_domain::Port;
use vcc_engine::Params;
use vcc_frames::Packet;

/// A header without offloads.
const PLAIN: [u8; 12] = [0; 12];

/// A port without policy: it passes what is not TCP as it is.
fn port() -> Port {
    Port::new(Params::default(), 64)
}

/// An empty ACK of a connection that the port does not know, which passes untouched.
fn frame(number: u16) -> Vec<u8> {
    let end = |host: &str, port: u16| format!("{host}:{port}").parse().expect("an end");
    Packet::new(end("10.0.0.1", 1000 + number), end("10.0.0.2", 80)).frame()
}
