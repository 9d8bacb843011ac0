//! The TCP connections of the calling thread's network namespace, by sock_diag(7).

use serde::Serialize;
use vcc_net::netlink::{self, Attributes};

use crate::{Error, Result};

/// struct inet_diag_msg.
const MESSAGE_BYTES: usize = 72;
/// struct inet_diag_sockid.
const SOCKET_ID_BYTES: usize = 48;
/// The attribute with the name of the congestion control.
const INET_DIAG_CONG: u16 = 4;

/// States (include/net/tcp_states.h) in which a socket has a connection with a congestion control: not
/// TIME_WAIT, CLOSE, LISTEN and NEW_SYN_RECV.
const STATES: [u32; 8] = [1, 2, 3, 4, 5, 8, 9, 11];

/// How many connections there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connections {
    pub all: usize,
    /// Those with a certain congestion control.
    pub using: usize,
}

impl Connections {
    pub(crate) fn count(name: &str) -> Result<Self> {
        let mut count = Self::default();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let messages = netlink::dump_sockets(&request(family as u8));
            for message in messages.map_err(|source| Error::Connections { source })? {
                count.add(&message, name);
            }
        }
        Ok(count)
    }

    fn add(&mut self, message: &[u8], name: &str) {
        self.all += 1;
        let used = Attributes::behind(MESSAGE_BYTES, message).text(INET_DIAG_CONG);
        self.using += usize::from(used.as_deref() == Some(name));
    }
}

/// struct inet_diag_req_v2: all connections of a family, with their congestion controls.
fn request(family: u8) -> Vec<u8> {
    let wanted = 1u8 << (INET_DIAG_CONG - 1);
    let states: u32 = STATES.iter().map(|state| 1 << state).sum();
    let mut request = vec![family, libc::IPPROTO_TCP as u8, wanted, 0];
    request.extend(states.to_ne_bytes());
    request.extend([0; SOCKET_ID_BYTES]);
    request
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use socket2::SockRef;
    use vcc_testing::{ip, on_a_host};

    use super::*;

    #[test]
    fn connections_are_counted_by_their_congestion_control() {
        on_a_host(|| {
            ip("link set lo up");
            let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
            let listener6 = TcpListener::bind("[::1]:0").expect("a listener");
            let count = || Connections::count("reno").expect("sock_diag");
            let before = count();
            assert_eq!(before.all, 0, "listeners are no connections");
            let connect = |to: &TcpListener| {
                let client = TcpStream::connect(to.local_addr().expect("its address"));
                [client.expect("connected"), to.accept().expect("accepted").0]
            };
            let (one, other) = (connect(&listener), connect(&listener6));
            for (socket, name) in one.iter().chain(&other).zip(["reno", "cubic", "cubic", "reno"]) {
                SockRef::from(socket).set_tcp_congestion(name.as_bytes()).expect(name);
            }
            assert_eq!(count(), Connections { all: 4, using: 2 });
        });
    }

    #[test]
    fn a_message_without_the_name_is_a_connection_nevertheless() {
        let mut count = Connections::default();
        count.add(&[0; MESSAGE_BYTES], "reno");
        assert_eq!(count, Connections { all: 1, using: 0 });
    }
}
