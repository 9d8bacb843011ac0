//! A network device of the calling thread's network namespace.

use std::ffi::CString;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub name: String,
    pub ifindex: u32,
    pub netns_inode: u64,
}

impl Device {
    pub(crate) fn named(name: &str) -> Result<Self> {
        let missing = || Error::NoSuchDevice { device: name.to_owned() };
        let c_name = CString::new(name).map_err(|_| missing())?;
        // SAFETY: the argument is a string that ends in NUL and outlives the call.
        let ifindex = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        if ifindex == 0 {
            return Err(missing());
        }
        Ok(Self { name: name.to_owned(), ifindex, netns_inode: netns_inode()? })
    }

    /// The datapath parses Ethernet headers, which other devices do not have.
    pub(crate) fn require_ethernet(&self) -> Result<()> {
        let kind = hardware_type(&self.name)?;
        if kind == libc::ARPHRD_ETHER {
            return Ok(());
        }
        Err(Error::NotEthernet { device: self.name.clone(), kind: hardware_name(kind) })
    }
}

pub(crate) fn netns_inode() -> Result<u64> {
    let path = "/proc/thread-self/ns/net";
    let metadata = fs::metadata(path).map_err(|e| Error::system(format!("read {path}"), e))?;
    Ok(metadata.ino())
}

/// Where `ip netns` has the calling thread's network namespace, or the place of any.
pub(crate) fn netns_path() -> Result<String> {
    const NAMED: &str = "/run/netns";
    let own = netns_inode()?;
    let entries = fs::read_dir(NAMED).into_iter().flatten().flatten();
    let mut paths = entries.map(|entry| entry.path());
    let path = paths.find(|path| fs::metadata(path).is_ok_and(|it| it.ino() == own));
    Ok(path.map_or_else(|| format!("{NAMED}/NAME"), |path| path.display().to_string()))
}

/// The current name of a device of this namespace, which may have been renamed.
pub(crate) fn name_of(ifindex: u32) -> Option<String> {
    String::from_utf8(raw_name_of(ifindex)?).ok()
}

/// False if this namespace has no such device; true where the kernel cannot be asked.
pub(crate) fn exists(ifindex: u32) -> bool {
    let has_gone =
        |error: io::Error| matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV));
    raw_name_of(ifindex).is_some() || !has_gone(io::Error::last_os_error())
}

fn raw_name_of(ifindex: u32) -> Option<Vec<u8>> {
    let mut buffer = [0u8; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the IF_NAMESIZE bytes that the call may write.
    let name = unsafe { libc::if_indextoname(ifindex, buffer.as_mut_ptr().cast()) };
    if name.is_null() {
        return None;
    }
    let length = buffer.iter().position(|&byte| byte == 0)?;
    Some(buffer[..length].to_vec())
}

/// By ioctl, because /sys/class/net shows the namespace in which sysfs was mounted.
fn hardware_type(name: &str) -> Result<u16> {
    let doing = || format!("read the type of device `{name}`");
    let socket =
        UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(|e| Error::system(doing(), e))?;
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: SIOCGIFHWADDR writes into the ifreq that it is given, which outlives the call.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR, &mut request) };
    if status < 0 {
        return Err(Error::last_os(doing()));
    }
    // SAFETY: SIOCGIFHWADDR filled in this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}

fn hardware_name(kind: u16) -> String {
    match kind {
        libc::ARPHRD_LOOPBACK => "the loopback device".into(),
        libc::ARPHRD_NONE => "a device without a link layer, such as a TUN device".into(),
        libc::ARPHRD_TUNNEL | libc::ARPHRD_TUNNEL6 | libc::ARPHRD_SIT | libc::ARPHRD_IPGRE => {
            "an IP tunnel".into()
        }
        libc::ARPHRD_PPP => "a PPP link".into(),
        other => format!("of hardware type {other}"),
    }
}
