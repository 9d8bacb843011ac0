//! Reads the sender's state from the kernel.

use std::net::SocketAddrV4;

use libbpf_rs::{MapCore, MapFlags, Object, ProgramInput};
use vcc_port::object;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sender_state.bpf.o"));
const WHAT: &str = "the tests' view of a connection";
/// BPF_PROG_RUN requires a frame of at least a header.
const FRAME: [u8; 14] = [0; 14];
const CA_PRIV_WORDS: usize = 26;

/// `struct seen` of sender_state.bpf.c.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pub cwnd_segs: u32,
    pub cwnd_cnt: u32,
    pub ssthresh_segs: u32,
    pub ca_state: u32,
    pub ecn_flags: u32,
    pub ca_priv: [u32; CA_PRIV_WORDS],
}

/// The kernel's enum tcp_ca_state.
pub const CA_OPEN: u32 = 0;
pub const CA_CWR: u32 = 2;
pub const CA_RECOVERY: u32 = 3;
pub const CA_LOSS: u32 = 4;
/// tcp_sock.ecn_flags
pub const ECN_NEGOTIATED: u32 = 1;

pub struct SenderState(Object);

impl SenderState {
    /// Reads the state of one connection.
    pub fn at(local: SocketAddrV4, peer: SocketAddrV4) -> Self {
        let open = object::open(OBJECT, WHAT).expect("an object");
        let state = Self(object::load(open, WHAT).expect("loaded"));
        // struct bpf_sock_tuple, with room for IPv6: the peer first, in network byte order.
        let mut tuple = [peer.ip().octets(), local.ip().octets()].concat();
        tuple.extend([peer.port().to_be_bytes(), local.port().to_be_bytes()].concat());
        tuple.resize(state.map("asked").value_size() as usize, 0);
        state.map("asked").update(&[0; 4], &tuple, MapFlags::ANY).expect("asked");
        state
    }

    /// Must be called in the connection's network namespace.
    pub fn state(&self) -> State {
        let program = self.0.progs_mut().find(|one| one.name() == "read_state").expect("a program");
        let input = ProgramInput { data_in: Some(&FRAME), ..ProgramInput::default() };
        assert_eq!(program.test_run(input).expect("run").return_value, 1, "no such connection");
        let seen = self.map("seen").lookup(&[0; 4], MapFlags::ANY).expect("read").expect("seen");
        let words = seen.chunks_exact(4).map(|word| word.try_into().expect("four bytes"));
        let words: Vec<u32> = words.map(u32::from_ne_bytes).collect();
        State {
            cwnd_segs: words[0],
            cwnd_cnt: words[1],
            ssthresh_segs: words[2],
            ca_state: words[3],
            ecn_flags: words[4],
            ca_priv: words[5..].try_into().expect("the rest"),
        }
    }

    fn map(&self, name: &str) -> libbpf_rs::Map<'_> {
        self.0.maps().find(|map| map.name() == name).expect("a map")
    }
}
