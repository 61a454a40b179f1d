//! A client of the Simple Network Time Protocol (RFC 4330; RFC 5905, section 14): one question, one answer.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout};

use super::Unix;

/// Port of time servers.
pub const PORT: u16 = 123;
/// A message without extensions, in bytes.
pub const LEN: usize = 48;
/// How long one answer may take.
const WAIT: Duration = Duration::from_secs(2);
/// Questions to one server.
const TRIES: u32 = 2;
/// Seconds from 1900 to 1970.
const EPOCH: u64 = 2_208_988_800;
/// No leap warning, version 4, mode client.
const QUESTION: u8 = 0x23;
const MODE_SERVER: u8 = 4;
/// The server itself does not know the time.
const UNSYNCHRONISED: u8 = 3;

/// Why an answer is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SntpError {
    /// Too short, or not from a server.
    #[error("not an answer of a time server")]
    Form,
    /// Not to our question: late, or forged.
    #[error("an answer to another question")]
    Stray,
    /// The server has no time, or wants to be left alone.
    #[error("the server does not know the time")]
    Unsynchronised,
}

/// The question. `nonce` takes the place of our own time, which is no business of the server's and wrong anyway.
pub fn question(nonce: u64) -> [u8; LEN] {
    let mut message = [0; LEN];
    message[0] = QUESTION;
    message[40..].copy_from_slice(&nonce.to_be_bytes());
    message
}

/// The time in an answer to the question with this nonce: when the server sent it.
///
/// # Errors
/// See [`SntpError`].
pub fn read(message: &[u8], nonce: u64) -> Result<Unix, SntpError> {
    let message = message.get(..LEN).ok_or(SntpError::Form)?;
    let (leap, version, mode) = (message[0] >> 6, message[0] >> 3 & 0b111, message[0] & 0b111);
    if mode != MODE_SERVER || !(3..=4).contains(&version) {
        return Err(SntpError::Form);
    }
    if message[24..32] != nonce.to_be_bytes() {
        return Err(SntpError::Stray);
    }
    // Stratum 0 is a "kiss of death", 16 and more is unsynchronised.
    if leap == UNSYNCHRONISED || !(1..=15).contains(&message[1]) || message[40..48] == [0; 8] {
        return Err(SntpError::Unsynchronised);
    }
    let seconds = u64::from(u32::from_be_bytes([message[40], message[41], message[42], message[43]]));
    // Numbers below the middle are of the era that begins in 2036 (RFC 4330, section 3).
    let era = if seconds < 1 << 31 { 1 << 32 } else { 0 };
    // From 1968 to 1970 there is no such time here, and no server that knows it.
    (seconds + era).checked_sub(EPOCH).ok_or(SntpError::Unsynchronised)
}

/// Asks a server.
///
/// # Errors
/// Why there is no time, in words.
pub async fn ask(server: SocketAddr) -> Result<Unix, String> {
    let mut last = String::new();
    for _ in 0..TRIES {
        match timeout(WAIT, exchange(server)).await {
            Ok(Ok(time)) => return Ok(time),
            Ok(Err(cause)) => last = cause,
            Err(_elapsed) => last = format!("no answer within {WAIT:?}"),
        }
    }
    Err(last)
}

async fn exchange(server: SocketAddr) -> Result<Unix, String> {
    let words = |e: std::io::Error| e.to_string();
    let own: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(own).await.map_err(words)?;
    socket.connect(server).await.map_err(words)?;
    let nonce = getrandom::u64().map_err(|e| e.to_string())?;
    let sent = Instant::now();
    socket.send(&question(nonce)).await.map_err(words)?;
    let mut buffer = [0; 512];
    loop {
        let len = socket.recv(&mut buffer).await.map_err(words)?;
        match read(&buffer[..len], nonce) {
            // Half of the way there and back has passed since the server looked at its clock.
            Ok(time) => return Ok(time + (sent.elapsed() / 2).as_secs()),
            // Whoever sends strays must not end the wait for the true answer.
            Err(SntpError::Stray | SntpError::Form) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NONCE: u64 = 0x0123_4567_89ab_cdef;

    fn answer(seconds: u32) -> [u8; LEN] {
        let mut message = [0; LEN];
        (message[0], message[1]) = (0x24, 2);
        message[24..32].copy_from_slice(&NONCE.to_be_bytes());
        message[40..44].copy_from_slice(&seconds.to_be_bytes());
        message[47] = 1;
        message
    }

    #[test]
    fn times_of_both_eras_are_read() {
        assert_eq!(read(&answer(3_913_056_000), NONCE), Ok(1_704_067_200), "the first of January 2024");
        assert_eq!(read(&answer(0), NONCE), Ok(2_085_978_496), "the first second of 2036's era");
    }

    #[test]
    fn what_cannot_be_believed_is_refused() {
        let changed = |at: usize, value: u8| {
            let mut message = answer(3_913_056_000);
            message[at] = value;
            message
        };
        for (why, message, error) in [
            ("a client's mode", changed(0, 0x23), SntpError::Form),
            ("version 1", changed(0, 0x0c), SntpError::Form),
            ("another question", changed(31, 0), SntpError::Stray),
            ("leap alarm", changed(0, 0xe4), SntpError::Unsynchronised),
            ("kiss of death", changed(1, 0), SntpError::Unsynchronised),
            ("stratum 16", changed(1, 16), SntpError::Unsynchronised),
            ("the middle of the era", answer(1 << 31), SntpError::Unsynchronised),
            ("a second before 1970", answer(2_208_988_799), SntpError::Unsynchronised),
        ] {
            assert_eq!(read(&message, NONCE), Err(error), "{why}");
        }
        assert_eq!(read(&answer(1)[..LEN - 1], NONCE), Err(SntpError::Form));
        assert_eq!(read(&answer(2_208_988_800), NONCE), Ok(0));
        let mut timeless = answer(0);
        timeless[47] = 0;
        assert_eq!(read(&timeless, NONCE), Err(SntpError::Unsynchronised));
    }

    #[test]
    fn our_own_question_is_no_answer() {
        assert_eq!(read(&question(NONCE), NONCE), Err(SntpError::Form));
    }

    #[tokio::test]
    async fn a_server_is_asked_and_strays_are_passed_over() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(async move {
            let mut question = [0; LEN];
            let (len, from) = server.recv_from(&mut question).await.unwrap();
            assert_eq!(len, LEN);
            let stray = answer(5);
            let mut good = answer(3_913_056_000);
            good[24..32].copy_from_slice(&question[40..]);
            server.send_to(&stray, from).await.unwrap();
            server.send_to(&good, from).await.unwrap();
        });
        assert_eq!(ask(address).await, Ok(1_704_067_200));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = read(&bytes, NONCE);
        }
    }
}
