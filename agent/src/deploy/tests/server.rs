//! An image server that misbehaves by plan, down to single bytes, which no HTTP library would let it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farrier_shared::contract::WebUrl;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What one request meets.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// What was asked for.
    Honest,
    /// The connection breaks after this many bytes of body.
    CutAfter(usize),
    /// Nothing more comes after this many bytes of body.
    StallAfter(usize),
    /// What was asked for, a kilobyte every few milliseconds.
    Trickle,
    /// The whole file, whatever range was asked for; cut after this many bytes.
    NoRanges(usize),
    /// The whole file without a word of its length, and then no end of it.
    Endless,
    /// A status without a body.
    Status(u16),
    /// Trouble, and how many seconds to leave it alone.
    Later(u64),
    /// A redirect.
    Redirect(String),
    /// Headers of another version of the file.
    Replaced,
    /// A range that was not asked for.
    WrongRange,
}

struct Plan {
    body: Vec<u8>,
    /// Bytes announced, when not the truth.
    announced: Option<usize>,
    answers: VecDeque<Answer>,
    /// What every request beyond the plan meets.
    then: Answer,
    requests: Vec<String>,
}

/// The server; stops when dropped.
pub(super) struct Server {
    address: std::net::SocketAddr,
    plan: Arc<Mutex<Plan>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(super) async fn start(body: &[u8], answers: &[Answer], then: Answer) -> Self {
        let plan = Plan {
            body: body.to_vec(),
            announced: None,
            answers: answers.iter().cloned().collect(),
            then,
            requests: Vec::new(),
        };
        let plan = Arc::new(Mutex::new(plan));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::clone(&plan);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let plan = Arc::clone(&shared);
                tokio::spawn(async move {
                    // A client that goes away is part of the game.
                    let _ = serve(stream, &plan).await;
                });
            }
        });
        Self { address, plan, task }
    }

    pub(super) async fn honest(body: &[u8]) -> Self {
        Self::start(body, &[], Answer::Honest).await
    }

    /// Has the server announce another length than the body has.
    pub(super) fn announce(&self, len: usize) {
        self.plan.lock().unwrap().announced = Some(len);
    }

    pub(super) fn url(&self) -> WebUrl {
        format!("http://{}/images/secret-path.img?token=secret-query", self.address).parse().unwrap()
    }

    /// The heads of the requests so far, lower-case.
    pub(super) fn requests(&self) -> Vec<String> {
        self.plan.lock().unwrap().requests.clone()
    }
}

async fn serve(mut stream: TcpStream, plan: &Mutex<Plan>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let asked: usize = head
        .lines()
        .find_map(|line| line.strip_prefix("range: bytes=")?.strip_suffix('-')?.parse().ok())
        .unwrap_or(0);
    let (answer, body, announced) = {
        let mut plan = plan.lock().unwrap();
        plan.requests.push(head);
        let answer = plan.answers.pop_front().unwrap_or_else(|| plan.then.clone());
        (answer, plan.body.clone(), plan.announced.unwrap_or(plan.body.len()))
    };
    match &answer {
        Answer::Status(status) => {
            let head = format!("HTTP/1.1 {status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            return stream.write_all(head.as_bytes()).await;
        }
        Answer::Later(seconds) => {
            let head = format!(
                "HTTP/1.1 503 No\r\nretry-after: {seconds}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            return stream.write_all(head.as_bytes()).await;
        }
        Answer::Endless => {
            let head = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n", body.len());
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&body).await?;
            return stream.shutdown().await;
        }
        Answer::Redirect(to) => {
            let head = format!(
                "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            return stream.write_all(head.as_bytes()).await;
        }
        _ => {}
    }
    if asked > body.len() || (asked == body.len() && asked > 0) {
        let head = format!(
            "HTTP/1.1 416 No\r\ncontent-range: bytes */{announced}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        return stream.write_all(head.as_bytes()).await;
    }
    let etag = if matches!(answer, Answer::Replaced) { "\"other\"" } else { "\"one\"" };
    let from = if matches!(answer, Answer::NoRanges(_)) { 0 } else { asked };
    let status = if from > 0 {
        let shown = if matches!(answer, Answer::WrongRange) { from + 1 } else { from };
        format!("206 Part\r\ncontent-range: bytes {shown}-{}/{announced}", announced - 1)
    } else {
        "200 OK".to_owned()
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\netag: {etag}\r\nconnection: close\r\n\r\n",
        announced - from
    );
    stream.write_all(head.as_bytes()).await?;
    let rest = &body[from..];
    match answer {
        Answer::CutAfter(n) | Answer::NoRanges(n) => stream.write_all(&rest[..n.min(rest.len())]).await?,
        Answer::StallAfter(n) => {
            stream.write_all(&rest[..n.min(rest.len())]).await?;
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
        Answer::Trickle => {
            for piece in rest.chunks(1 << 10) {
                stream.write_all(piece).await?;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        _ => stream.write_all(rest).await?,
    }
    stream.shutdown().await
}
