//! Buffers like C's standard I/O: calls of any size, system calls of whole file system blocks.

use std::fs::File;
use std::io::{self, Read, Write};

pub(super) fn write(
    file: &mut File,
    content: &[u8],
    call: usize,
    buffer: &mut [u8],
) -> io::Result<()> {
    let size = buffer.len();
    let mut held = 0;
    for mut piece in content.chunks(call) {
        let fits = piece.len().min(size - held);
        buffer[held..held + fits].copy_from_slice(&piece[..fits]);
        held += fits;
        piece = &piece[fits..];
        if !piece.is_empty() {
            file.write_all(&buffer[..held])?;
            let whole = piece.len() - piece.len() % size;
            file.write_all(&piece[..whole])?;
            held = piece.len() - whole;
            buffer[..held].copy_from_slice(&piece[whole..]);
        }
    }
    file.write_all(&buffer[..held])
}

/// `into` holds the bytes of one call.
pub(super) fn read(
    file: &mut File,
    bytes: u64,
    call: usize,
    into: &mut [u8],
    buffer: &mut [u8],
) -> io::Result<u64> {
    let (mut from, mut to) = (0, 0);
    let mut done = 0;
    while done < bytes {
        let want = (bytes - done).min(call as u64) as usize;
        let mut got = 0;
        while got < want {
            if from == to {
                let left = want - got;
                if left >= buffer.len() {
                    let whole = left - left % buffer.len();
                    match read_some(file, &mut into[got..got + whole])? {
                        0 => return Ok(done + got as u64),
                        n => got += n,
                    }
                    continue;
                }
                (from, to) = (0, read_some(file, buffer)?);
                if to == 0 {
                    return Ok(done + got as u64);
                }
            }
            let n = (to - from).min(want - got);
            into[got..got + n].copy_from_slice(&buffer[from..from + n]);
            from += n;
            got += n;
        }
        done += want as u64;
    }
    Ok(done)
}

pub(super) fn read_some(file: &mut File, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Seek, SeekFrom};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn what_is_written_is_read(content in proptest::collection::vec(any::<u8>(), 0..5000), calls in (1usize..6000, 1usize..6000), buffer in 1usize..3000) {
            let mut file = tempfile::tempfile().unwrap();
            let mut buffer = vec![0; buffer];
            write(&mut file, &content, calls.0, &mut buffer).unwrap();
            file.seek(SeekFrom::Start(0)).unwrap();
            let mut back = Vec::new();
            file.read_to_end(&mut back).unwrap();
            prop_assert_eq!(&back, &content);
            file.seek(SeekFrom::Start(0)).unwrap();
            let mut into = vec![0; calls.1];
            let asked = content.len() as u64 + 10;
            prop_assert_eq!(read(&mut file, asked, calls.1, &mut into, &mut buffer).unwrap(), content.len() as u64, "a short file is detected");
            file.seek(SeekFrom::Start(0)).unwrap();
            prop_assert_eq!(read(&mut file, content.len() as u64, calls.1, &mut into, &mut buffer).unwrap(), content.len() as u64);
            let last = content.len() - content.len().saturating_sub(1) / calls.1 * calls.1;
            prop_assert_eq!(&into[..last], &content[content.len() - last..], "the last call's bytes are there");
        }
    }
}
