//! What a device and the kernel do on its behalf, by the ioctls of ethtool(8).

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::{Error, Result};

/// linux/sockios.h and linux/ethtool.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETH_SS_FEATURES: u32 = 4;
const NAME_WORDS: usize = 32 / size_of::<u32>();
/// Of struct ethtool_get_features_block: available, requested, active, never_changed.
const BLOCK_WORDS: usize = 4;
const ACTIVE: usize = 2;

/// The names of a device's active features, such as `rx-gro-list`, of the calling thread's network
/// namespace. None of a device that has no such ioctls, or is gone.
pub(crate) fn active(device: &str) -> Result<Vec<String>> {
    match read(device) {
        Ok(names) => Ok(names),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENODEV)) => {
            Ok(Vec::new())
        }
        Err(e) => Err(Error::system(format!("read the features of `{device}`"), e)),
    }
}

fn read(device: &str) -> io::Result<Vec<String>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // struct ethtool_sset_info: command, reserved, a mask of 64 bits, and a number for each bit.
    let mut info = vec![ETHTOOL_GSSET_INFO, 0, 0, 0, 0];
    info[2..4].copy_from_slice(&words_of(1 << ETH_SS_FEATURES));
    ask(&socket, device, &mut info)?;
    let features = info[4] as usize;
    // struct ethtool_gstrings: command, set, number, and the names.
    let mut names = vec![0; 3 + features * NAME_WORDS];
    names[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_FEATURES, features as u32]);
    ask(&socket, device, &mut names)?;
    // struct ethtool_gfeatures: command, blocks, and the blocks.
    let blocks = features.div_ceil(32);
    let mut values = vec![0; 2 + blocks * BLOCK_WORDS];
    values[..2].copy_from_slice(&[ETHTOOL_GFEATURES, blocks as u32]);
    ask(&socket, device, &mut values)?;
    let is_active = |index: &usize| {
        let word = values[2 + index / 32 * BLOCK_WORDS + ACTIVE];
        word >> (index % 32) & 1 != 0
    };
    let name = |index: usize| name(&names[3 + index * NAME_WORDS..][..NAME_WORDS]);
    Ok((0..features).filter(is_active).map(name).collect())
}

fn words_of(number: u64) -> [u32; 2] {
    let bytes = number.to_ne_bytes();
    let word =
        |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [word(0), word(4)]
}

fn name(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
    String::from_utf8_lossy(&bytes.take_while(|byte| *byte != 0).collect::<Vec<u8>>()).into_owned()
}

/// Hands a request to the device's driver, which answers in place.
fn ask(socket: &UdpSocket, device: &str, request: &mut [u32]) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.len() >= ifreq.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in ifreq.ifr_name.iter_mut().zip(device.bytes()) {
        *place = byte as libc::c_char;
    }
    ifreq.ifr_ifru.ifru_data = request.as_mut_ptr().cast();
    // SAFETY: the request states how much the kernel may write, which is no more than it has.
    match unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &mut ifreq) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
