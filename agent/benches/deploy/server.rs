//! A server of files that costs next to nothing: what is measured runs on the same processors.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, Result};

pub(crate) struct Server {
    address: std::net::SocketAddr,
}

impl Server {
    /// Serves the files of a directory until the program ends.
    pub(crate) fn start(dir: &Path) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("a port")?;
        let address = listener.local_addr()?;
        let dir = dir.to_owned();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let dir = dir.clone();
                // A client that goes away has its own error to tell.
                thread::spawn(move || drop(serve(stream, &dir)));
            }
        });
        Ok(Self { address })
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }
}

/// Answers one request. `io::copy` from a file to a socket is `sendfile`.
fn serve(mut stream: TcpStream, dir: &Path) -> Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().context("a request")??;
    while !lines.next().context("an end of the head")??.is_empty() {}
    let name = request.split(' ').nth(1).and_then(|path| path.strip_prefix('/')).context("a path")?;
    let name = PathBuf::from(name).file_name().context("a name")?.to_owned();
    let mut file = File::open(dir.join(name))?;
    let len = file.metadata()?.len();
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {len}\r\nconnection: close\r\n\r\n")?;
    std::io::copy(&mut file, &mut stream)?;
    Ok(())
}
