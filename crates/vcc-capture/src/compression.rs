//! Compressed files, decompressed as they are read. Memory is bounded: by 32 KiB for gzip, and for zstd by the
//! largest window that `ruzstd` accepts, 100 MiB.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::bufread::GzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: u32 = 0xfd2f_b528;
const ZSTD_SKIPPED_MAGIC: u32 = 0x184d_2a50;
const MAGIC_BYTES: u64 = 4;
const BUFFER_BYTES: usize = 1 << 16;

/// The content of a file.
pub struct Content<'a> {
    pub reader: Box<dyn BufRead + Send + 'a>,
    /// Offsets in the content are not those in the file.
    pub is_compressed: bool,
}

impl<'a> Content<'a> {
    /// Recognises gzip and zstd by their first bytes.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn from_file(mut file: impl Read + Send + 'a) -> io::Result<Self> {
        let mut magic = Vec::new();
        file.by_ref().take(MAGIC_BYTES).read_to_end(&mut magic)?;
        let is_gzip = magic.starts_with(&GZIP_MAGIC);
        // A file may begin with a frame that is skipped (RFC 8878, 3.1.2), as those of pzstd do.
        let is_zstd = match magic.first_chunk().map(|magic| u32::from_le_bytes(*magic)) {
            Some(magic) => magic == ZSTD_MAGIC || magic & !0xf == ZSTD_SKIPPED_MAGIC,
            None => false,
        };
        let file = Cursor::new(magic).chain(file);
        let reader: Box<dyn BufRead + Send + 'a> = if is_gzip {
            Box::new(buffered(Members::new(file)))
        } else if is_zstd {
            Box::new(buffered(Frames::new(file)))
        } else {
            Box::new(buffered(file))
        };
        Ok(Self { reader, is_compressed: is_gzip || is_zstd })
    }
}

fn buffered<R: Read>(reader: R) -> BufReader<R> {
    BufReader::with_capacity(BUFFER_BYTES, reader)
}

/// The members of a gzip file, one after another (RFC 1952, 2.2), and zeros behind them, which padded media
/// leave.
struct Members<R> {
    /// None between two members.
    decoder: Option<GzDecoder<Whole<R>>>,
    file: Option<Whole<R>>,
}

type Whole<R> = BufReader<Chain<Cursor<Vec<u8>>, R>>;

impl<R: Read> Members<R> {
    fn new(file: Chain<Cursor<Vec<u8>>, R>) -> Self {
        Self { decoder: None, file: Some(buffered(file)) }
    }

    /// False at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        let Some(mut file) = self.file.take() else { return Ok(false) };
        loop {
            let ready = file.fill_buf()?;
            let zeros = ready.iter().take_while(|byte| **byte == 0).count();
            if ready.is_empty() {
                return Ok(false);
            }
            if zeros == 0 {
                self.decoder = Some(GzDecoder::new(file));
                return Ok(true);
            }
            file.consume(zeros);
        }
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(decoder) = &mut self.decoder {
                let got = decoder.read(to)?;
                if got > 0 {
                    return Ok(got);
                }
                self.file = self.decoder.take().map(GzDecoder::into_inner);
            }
            if !self.begin()? {
                return Ok(0);
            }
        }
    }
}

/// The frames of a zstd file, one after another (RFC 8878, 3): `ruzstd` decodes a single one.
struct Frames<R> {
    file: Whole<R>,
    decoder: FrameDecoder,
    is_inside: bool,
}

impl<R: Read> Frames<R> {
    fn new(file: Chain<Cursor<Vec<u8>>, R>) -> Self {
        Self { file: buffered(file), decoder: FrameDecoder::new(), is_inside: false }
    }

    /// False at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.file.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.file) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.file.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    fn decode(&mut self, bytes: usize) -> io::Result<()> {
        while !self.decoder.is_finished() && self.decoder.can_collect() < bytes {
            let missing_bytes = bytes - self.decoder.can_collect();
            let strategy = BlockDecodingStrategy::UptoBytes(missing_bytes);
            self.decoder.decode_blocks(&mut self.file, strategy).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn verify(&self) -> io::Result<()> {
        let stored = self.decoder.get_checksum_from_data();
        if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a zstd frame has a wrong checksum",
            ));
        }
        Ok(())
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            if self.is_inside {
                self.decode(to.len())?;
                let got = self.decoder.read(to)?;
                if got > 0 {
                    return Ok(got);
                }
                self.verify()?;
            }
            self.is_inside = self.begin()?;
            if !self.is_inside {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn read(file: &[u8]) -> io::Result<(Vec<u8>, bool)> {
        let mut content = Content::from_file(file)?;
        let mut bytes = Vec::new();
        content.reader.read_to_end(&mut bytes)?;
        Ok((bytes, content.is_compressed))
    }

    fn text() -> Vec<u8> {
        (0..200_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect()
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).expect("memory");
        encoder.finish().expect("memory")
    }

    fn zstd(content: &[u8]) -> Vec<u8> {
        compress_to_vec(content, CompressionLevel::Fastest)
    }

    #[test]
    fn content_is_that_of_the_file() {
        let text = text();
        let (one, other) = text.split_at(300_001);
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"any"].concat();
        for (file, content, is_compressed) in [
            (text.clone(), &text[..], false),
            (vec![], &[][..], false),
            (vec![7], &[7][..], false),
            (gzip(&text), &text, true),
            ([gzip(one), gzip(other)].concat(), &text, true),
            (zstd(&text), &text, true),
            ([gzip(&text), vec![0; 70_000]].concat(), &text, true),
            ([zstd(one), skipped.clone(), zstd(other)].concat(), &text, true),
            ([skipped, zstd(&text)].concat(), &text, true),
        ] {
            let (bytes, was_compressed) = read(&file).expect("it can be read");
            assert!(bytes == content, "{} of {} bytes", bytes.len(), content.len());
            assert_eq!(was_compressed, is_compressed);
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_behind_what_can_be_read() {
        for file in [gzip(&text()), zstd(&text())] {
            let cut = &file[..file.len() - file.len() / 4];
            let mut content = Content::from_file(cut).expect("its beginning");
            let mut bytes = Vec::new();
            let error = content.reader.read_to_end(&mut bytes).expect_err("it is cut");
            assert!(!error.to_string().is_empty());
            assert!(text().starts_with(&bytes) && !bytes.is_empty(), "{} bytes", bytes.len());
        }
        let mut wrong = zstd(&text());
        *wrong.last_mut().expect("a checksum") ^= 1;
        let error = read(&wrong).expect_err("a wrong checksum");
        assert_eq!(error.to_string(), "a zstd frame has a wrong checksum");
    }
}
