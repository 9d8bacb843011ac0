//! XDP programs and packet sockets.

use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};

use super::*;

const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
/// linux/if_link.h.
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

fn xdp(verdict: i32, flags: u32) -> OwnedFd {
    let program = probe::load_program(libbpf_sys::BPF_PROG_TYPE_XDP, c"takes_frames", verdict);
    let program = program.expect("a program");
    let ifindex = Device::named(PORT).expect("a device").ifindex as libc::c_int;
    // SAFETY: null stands for no options.
    let status = unsafe {
        libbpf_sys::bpf_xdp_attach(ifindex, program.as_raw_fd(), flags, std::ptr::null())
    };
    assert_eq!(status, 0);
    program
}

#[test]
fn an_xdp_program_that_takes_the_frames_hides_them() {
    on_a_host(|| {
        let guest = guest();
        let _port = attach();
        let _program = xdp(XDP_DROP, XDP_FLAGS_DRV_MODE);
        let findings = watched(&guest);
        let (severity, found) = only(&findings, "xdp");
        assert_eq!(severity, Severity::Problem, "{findings:#?}");
        assert!(found.starts_with("native XDP: takes_frames (ID "), "{found}");
        assert_eq!(of_kind(&findings, "traffic")[0].0, Severity::Problem, "{findings:#?}");
    });
}

#[test]
fn an_xdp_program_that_lets_frames_pass_is_a_warning_until_somebody_watches() {
    on_a_host(|| {
        let guest = guest();
        let _port = attach();
        let _program = xdp(XDP_PASS, XDP_FLAGS_SKB_MODE);
        assert_eq!(only(&look(PORT), "xdp").0, Severity::Warning);
        let findings = watched(&guest);
        let (severity, found) = only(&findings, "xdp");
        assert_eq!(severity, Severity::Note, "{findings:#?}");
        assert!(found.starts_with("generic XDP: takes_frames"), "{found}");
    });
}

/// A packet socket as a capture has one.
fn packet_socket(ifindex: u32) -> OwnedFd {
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: the call takes no pointers.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, protocol.into()) };
    assert!(socket >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the descriptor is new, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: all-zero bytes are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol;
    address.sll_ifindex = ifindex as libc::c_int;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address outlives the call, which reads `length` bytes of it.
    let status = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
    socket
}

#[test]
fn a_capture_is_a_note_with_its_process() {
    on_a_host(|| {
        let _guest = guest();
        let socket = packet_socket(Device::named(PORT).expect("a device").ifindex);
        let findings = look(PORT);
        let (severity, found) = only(&findings, "packet-socket");
        assert_eq!(severity, Severity::Note);
        assert!(found.contains(&format!("(process {})", std::process::id())), "{found}");
        drop(socket);
        // A process that another test is starting has it, too, until it executes its program.
        eventually("nobody has the socket", || of_kind(&look(PORT), "packet-socket").is_empty());
    });
}

/// The flags of the first SYN in what the socket gets.
fn flags_of_syn(socket: &OwnedFd) -> u8 {
    const SYN: u8 = 0x02;
    const ETHERNET_BYTES: usize = 14;
    const IPV4_BYTES: usize = 20;
    let mut frame = [0u8; 2048];
    loop {
        // SAFETY: the call writes at most the buffer's length to the buffer, which outlives it.
        let length =
            unsafe { libc::recv(socket.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
        let length = usize::try_from(length).expect("a frame");
        let ip = &frame[ETHERNET_BYTES..length];
        let is_tcp = ip.len() >= 40 && ip[0] == 0x45 && i32::from(ip[9]) == libc::IPPROTO_TCP;
        if is_tcp && ip[IPV4_BYTES + 13] & SYN != 0 {
            return ip[IPV4_BYTES + 13];
        }
    }
}

#[test]
fn a_packet_socket_gets_what_the_guest_sent_before_vcc() {
    on_a_host(|| {
        const ECE_CWR: u8 = 0xc0;
        let guest = guest();
        let port = attach();
        let socket = packet_socket(Device::named(PORT).expect("a device").ifindex);
        let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
        let to = listener.local_addr().expect("an address");
        let opened = guest.inside(|| TcpStream::connect(to)).expect("inside").expect("connected");
        let flows = port.flows().expect("flows");
        assert_eq!(
            flows[0].state.ecn_fabric(),
            "yes",
            "vcc asked for ECN, and the host accepted it"
        );
        assert_eq!(flags_of_syn(&socket) & ECE_CWR, 0, "which the socket did not see");
        drop(opened);
    });
}
