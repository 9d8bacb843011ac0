use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use vcc_testing::Netns;

/// A connection between the guest and the host.
pub struct Talk {
    guest: TcpStream,
    host: TcpStream,
}

impl Talk {
    pub fn begin(netns: &Netns) -> Self {
        Self::at(netns, "192.0.2.2:0")
    }

    /// The host listens at `address`.
    pub fn at(netns: &Netns, address: &str) -> Self {
        let listener = TcpListener::bind(address).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let guest = netns.inside(|| TcpStream::connect(address)).expect("inside").expect("open");
        let (host, _) = listener.accept().expect("accepted");
        Self { guest, host }
    }

    pub fn goes_on(&mut self) {
        for stream in [&self.guest, &self.host] {
            stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        }
        let mut buffer = [0; 4];
        self.guest.write_all(b"ping").expect("sent");
        self.host.read_exact(&mut buffer).expect("received");
        self.host.write_all(b"pong").expect("sent");
        self.guest.read_exact(&mut buffer).expect("received");
    }

    /// The guest sends what the host does not get.
    pub fn says_in_vain(&mut self) {
        self.guest.write_all(b"ping").expect("sent");
        let wait = Some(Duration::from_millis(500));
        self.host.set_read_timeout(wait).expect("a timeout");
        self.host.read_exact(&mut [0; 4]).expect_err("nothing arrives");
    }

    /// The host gets what it did not get before.
    pub fn hears(&mut self) {
        self.host.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        self.host.read_exact(&mut [0; 4]).expect("received");
    }
}
