//! Waits for what a packet socket is open for.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::time::sleep;

/// `ENETDOWN` is told once per change of the link; a short wait keeps a flapping one cheap.
const PAUSE: Duration = Duration::from_millis(100);

/// The next packet, of at most `longest` bytes, that `read` makes something of. Never fails: a link that goes down
/// comes up again, or the caller's deadline passes.
pub(crate) async fn hear<T>(
    socket: &AsyncFd<OwnedFd>,
    longest: usize,
    read: impl Fn(&[u8]) -> Option<T>,
) -> T {
    let mut buffer = vec![0_u8; longest];
    loop {
        let Ok(mut ready) = socket.readable().await else { return std::future::pending().await };
        match ready.try_io(|fd| Ok(nix::unistd::read(fd.get_ref().as_fd(), &mut buffer)?)) {
            Ok(Ok(len)) => {
                if let Some(heard) = read(&buffer[..len.min(buffer.len())]) {
                    return heard;
                }
            }
            Ok(Err(_)) => sleep(PAUSE).await,
            Err(_would_block) => {}
        }
    }
}
