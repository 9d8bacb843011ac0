//! What a virtual machine monitor and its guest send to a card: messages with descriptors, and anything
//! that they write into the memory that they share. Nothing ends the card, what it puts on the wire
//! makes sense, nothing of a guest's stays behind, and the next guest is served.

mod host;
mod hostile;

use crate::input::Input;
use crate::params::params;
use crate::steps;
use host::Host;
use hostile::Hostile;

pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut host = Host::new(params(&mut input, 0));
    let mut hostile = Hostile::new(&mut input, &mut host);
    while !input.is_empty() {
        steps::count();
        hostile.step(&mut input, &mut host);
    }
    drop(hostile);
    host.forgets();
    host.serves_another();
}
