//! Reads a request from an untrusted client.

use std::io::{self, Read};

use vcc_policy::text::shortened;

use super::protocol::Request;
use crate::policy_file;

/// The longest request is one with a policy's text.
const LONGEST_BYTES: usize = policy_file::LONGEST_BYTES;
/// PATH_MAX. Messages quote the name.
const LONGEST_FILE_NAME_BYTES: usize = 4096;

impl Request {
    /// Reads a request's line; None if there is nothing at all. Bytes behind the line are ignored.
    ///
    /// # Errors
    /// Why it is rejected: it is malformed, too long, or could not be read.
    pub fn read(from: &mut impl Read) -> Result<Option<Self>, String> {
        let Some(line) = line(from)? else { return Ok(None) };
        let request: Request = serde_json::from_slice(&line).map_err(|error| {
            let error = error.to_string();
            format!("unknown request, from another version of vcc?: {}", shortened(&error))
        })?;
        if let Request::Apply { policy: Some(policy) } = &request
            && policy.file_name.len() > LONGEST_FILE_NAME_BYTES
        {
            return Err(format!("file_name is longer than {LONGEST_FILE_NAME_BYTES} bytes"));
        }
        Ok(Some(request))
    }
}

fn line(from: &mut impl Read) -> Result<Option<Vec<u8>>, String> {
    let mut line = Vec::new();
    let mut buffer = [0; 1 << 16];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) if line.is_empty() => return Ok(None),
            Ok(0) => return Err("the request does not end with a newline".into()),
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.to_string()),
        };
        let end = read.iter().position(|&byte| byte == b'\n');
        line.extend_from_slice(&read[..end.unwrap_or(read.len())]);
        if line.len() > LONGEST_BYTES {
            return Err(format!("the request is longer than {LONGEST_BYTES} bytes"));
        }
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}
