//! A frame that announces where a guest is.

const FRAME_BYTES: usize = 60;
const BROADCAST: [u8; 6] = [0xff; 6];
/// Its type, Ethernet and IPv4 with their lengths, and a reverse request (RFC 903; RFC 826).
const RARP: [u8; 10] = [0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3];

/// "Who am I?", as QEMU asks it for its other cards.
pub(crate) fn request(mac: [u8; 6]) -> [u8; FRAME_BYTES] {
    let no_address = [0; 4];
    let said = [&BROADCAST[..], &mac, &RARP, &mac, &no_address, &mac, &no_address].concat();
    let mut frame = [0; FRAME_BYTES];
    frame[..said.len()].copy_from_slice(&said);
    frame
}
