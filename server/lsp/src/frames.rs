//! Messages out of a byte stream, whatever the stream holds.

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt};

/// A message longer than this is skipped: no document is that long.
const LONGEST: u64 = 256 * 1024 * 1024;
/// A header line longer than this is not a header.
const LONGEST_LINE: u64 = 4096;

/// What came in.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// The body of a message.
    Body(Vec<u8>),
    /// Something else, in words; the stream goes on after it.
    Junk(&'static str),
}

/// The next frame; `None` when the stream has ended.
pub async fn read(input: &mut (impl AsyncBufRead + Unpin)) -> Option<Frame> {
    let mut length = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        if input
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .await
            .ok()?
            == 0
        {
            return None;
        }
        let header = line.trim_ascii();
        if header.is_empty() {
            match length {
                Some(length) => return body(input, length).await,
                None => continue,
            }
        }
        match parse(header) {
            Header::Length(found) => length = Some(found),
            Header::Other => {}
            Header::Bad(why) => return Some(Frame::Junk(why)),
        }
    }
}

enum Header {
    Length(u64),
    Other,
    Bad(&'static str),
}

/// Reads one header line. `Content-Length` is found behind leading rubbish too: a stream that lost its
/// place finds it again.
fn parse(line: &[u8]) -> Header {
    const NAME: &[u8] = b"content-length:";
    let at = line
        .windows(NAME.len())
        .position(|window| window.eq_ignore_ascii_case(NAME));
    if let Some(at) = at {
        let digits = line[at + NAME.len()..].trim_ascii();
        return match std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok())
        {
            Some(length) => Header::Length(length),
            None => Header::Bad("a Content-Length that is not a number"),
        };
    }
    if line.len() < 256 && line.contains(&b':') && line.is_ascii() && !line.contains(&b'{') {
        Header::Other
    } else {
        Header::Bad("bytes that are no message")
    }
}

async fn body(input: &mut (impl AsyncBufRead + Unpin), length: u64) -> Option<Frame> {
    let mut body = input.take(length);
    if length > LONGEST {
        tokio::io::copy(&mut body, &mut tokio::io::sink())
            .await
            .ok()?;
        return Some(Frame::Junk("a message of more than 256 MiB"));
    }
    // Not reserved in advance: a length is only believed as far as bytes arrive.
    let mut bytes = Vec::with_capacity(length.min(64 * 1024) as usize);
    let read = read_all(&mut body, &mut bytes).await?;
    (read == length).then_some(Frame::Body(bytes))
}

async fn read_all(input: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> Option<u64> {
    input.read_to_end(bytes).await.ok().map(|read| read as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, expected: &[Result<&str, ()>]) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let found = runtime.block_on(async {
            let mut input = input.as_bytes();
            let mut found = Vec::new();
            while let Some(frame) = read(&mut input).await {
                found.push(match frame {
                    Frame::Body(body) => Ok(String::from_utf8(body).expect("text")),
                    Frame::Junk(_) => Err(()),
                });
            }
            found
        });
        let expected: Vec<_> = expected.iter().map(|one| one.map(str::to_owned)).collect();
        assert_eq!(found, expected, "{input:?}");
    }

    #[test]
    fn messages_come_one_after_the_other() {
        check(
            "Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n[1]",
            &[Ok("{}"), Ok("[1]")],
        );
        check(
            "content-type: x\r\nCONTENT-LENGTH: 2\r\n\r\n{}",
            &[Ok("{}")],
        );
        check("", &[]);
        check("Content-Length: 20\r\n\r\n{}", &[]);
    }

    #[test]
    fn the_stream_goes_on_after_junk() {
        check("rubbish\nContent-Length: 2\r\n\r\n{}", &[Err(()), Ok("{}")]);
        check(
            "Content-Length: x\r\n\r\nContent-Length: 2\r\n\r\n{}",
            &[Err(()), Ok("{}")],
        );
        check(
            "Content-Length: -1\r\n\r\nContent-Length: 2\r\n\r\n{}",
            &[Err(()), Ok("{}")],
        );
        check("{\"jsonrpc\"}Content-Length: 2\r\n\r\n{}", &[Ok("{}")]);
    }
}
