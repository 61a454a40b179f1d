//! The log: plain lines with the time since the kernel started, on every console a person may be watching.
//!
//! Each line goes to `/dev/console`; to the first serial port when that is not a console already, since boot
//! scripts do not name one and BMCs forward it; at debug level to the kernel's log, where it outlives a crash
//! in pstore; and to a bounded memory, which is sent to the controller when the run fails.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::termios::{BaudRate, SetArg, cfsetspeed, tcgetattr, tcsetattr};
use nix::time::{ClockId, clock_gettime};
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// How much of the log is kept, in bytes.
const KEPT: usize = 256 << 10;
/// How long a terminal may take for a line: a full buffer is sent within it even at the slowest speed in use.
const TERMINAL_PATIENCE: Duration = Duration::from_secs(1);
/// Between two tries.
const TERMINAL_PAUSE: Duration = Duration::from_millis(5);
const SERIAL: &str = "ttyS0";

/// The end of the log, for the controller.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    lines: Arc<Mutex<VecDeque<u8>>>,
}

impl Journal {
    /// What is kept, oldest first, beginning at the start of a line.
    pub fn text(&self) -> Vec<u8> {
        let kept = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        if bytes.len() < KEPT {
            return bytes;
        }
        let start = bytes.iter().position(|b| *b == b'\n').map_or(0, |at| at + 1);
        bytes[start..].to_vec()
    }

    fn append(&self, line: &[u8]) {
        let mut kept = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(line);
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
    }
}

/// Starts logging as PID 1. With `debug`, our own debug messages too; other crates only ever warn, since their
/// debug messages may hold headers and URLs.
pub(super) fn start(debug: bool) -> Journal {
    let journal = Journal::default();
    let console = Console { outputs: Arc::new(Mutex::new(open_outputs())), journal: journal.clone() };
    let own = if debug { Level::DEBUG } else { Level::INFO };
    let filter = Targets::new()
        .with_target("farrier_agent", own)
        .with_target("farrier_shared", own)
        .with_default(LevelFilter::WARN);
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_timer(Uptime)
        .with_target(false)
        .with_writer(console);
    // A second call would be a fault of ours, and is no reason to stop.
    let _ = tracing_subscriber::registry().with(layer).with(filter).try_init();
    journal
}

/// Seconds since the kernel started, as in the kernel's own messages.
struct Uptime;

impl FormatTime for Uptime {
    fn format_time(&self, w: &mut Writer<'_>) -> std::fmt::Result {
        let now = clock_gettime(ClockId::CLOCK_BOOTTIME).map_err(|_| std::fmt::Error)?;
        write!(w, "[{:>5}.{:03}]", now.tv_sec(), now.tv_nsec() / 1_000_000)
    }
}

/// A terminal that may refuse what it is given.
struct Terminal<W> {
    device: W,
    /// It refused last time.
    stuck: bool,
}

impl<W: Write> Terminal<W> {
    fn new(device: W) -> Self {
        Self { device, stuck: false }
    }

    /// Writes a line, or as much of it as is taken within `patience`: flow control or a Ctrl-S at the other end
    /// must not hold the run.
    fn write(&mut self, mut text: &[u8], patience: Duration) {
        let start = Instant::now();
        while !text.is_empty() {
            match self.device.write(text) {
                Ok(taken) if taken > 0 => {
                    self.stuck = false;
                    text = &text[taken..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Waited for once, until it takes something again.
                    if self.stuck || start.elapsed() >= patience {
                        self.stuck = true;
                        return;
                    }
                    thread::sleep(TERMINAL_PAUSE);
                }
                // It went away, which must not stop the run either.
                Ok(_) | Err(_) => return,
            }
        }
    }
}

struct Outputs {
    terminals: Vec<Terminal<File>>,
    kernel: Option<File>,
}

fn open_outputs() -> Outputs {
    let open = |path: &str| {
        OpenOptions::new()
            .write(true)
            // Without O_NONBLOCK, opening a serial port waits for a carrier, and writing for flow control.
            .custom_flags(nix::libc::O_NOCTTY | nix::libc::O_CLOEXEC | nix::libc::O_NONBLOCK)
            .open(path)
            .ok()
    };
    let mut terminals: Vec<File> = open("/dev/console").into_iter().collect();
    let consoles = fs::read_to_string("/sys/class/tty/console/active").unwrap_or_default();
    // Type 0 is a port without a chip behind it.
    let is_real = fs::read_to_string(format!("/sys/class/tty/{SERIAL}/type")).is_ok_and(|t| t.trim() != "0");
    if is_real && !consoles.split_whitespace().any(|c| c == SERIAL) {
        let serial = open(&format!("/dev/{SERIAL}"));
        if let Some(port) = &serial
            && let Ok(mut settings) = tcgetattr(port)
        {
            // BMCs expect this speed; at the kernel's default of 9600 the log would slow the run.
            let _ = cfsetspeed(&mut settings, BaudRate::B115200);
            let _ = tcsetattr(port, SetArg::TCSANOW, &settings);
        }
        terminals.extend(serial);
    }
    // The kernel would drop lines beyond ten in five seconds; where it insists, it drops them.
    let _ = fs::write("/proc/sys/kernel/printk_devkmsg", "on\n");
    let terminals = terminals.into_iter().map(Terminal::new).collect();
    Outputs { terminals, kernel: open("/dev/kmsg") }
}

#[derive(Clone)]
struct Console {
    outputs: Arc<Mutex<Outputs>>,
    journal: Journal,
}

impl<'a> MakeWriter<'a> for Console {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for Console {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.journal.append(line);
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        for terminal in &mut outputs.terminals {
            terminal.write(&carriage_returns(line), TERMINAL_PATIENCE);
        }
        if let Some(kernel) = &mut outputs.kernel {
            // Level 7: kept by the kernel, not shown a second time on the console.
            let _ = kernel.write_all(&[b"<7>farrier: ", line].concat());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Terminals may be in raw mode after firmware used them.
fn carriage_returns(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len() + 2);
    for byte in line {
        if *byte == b'\n' {
            out.push(b'\r');
        }
        out.push(*byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_keeps_the_end_and_whole_lines() {
        let journal = Journal::default();
        journal.append(b"first\n");
        assert_eq!(journal.text(), b"first\n");
        for n in 0..40_000 {
            journal.append(format!("line {n}\n").as_bytes());
        }
        let text = String::from_utf8(journal.text()).unwrap();
        assert!(text.len() <= KEPT && text.len() > KEPT - 32);
        assert!(text.starts_with("line ") && text.ends_with("line 39999\n"));
    }

    /// Takes so many bytes and then blocks.
    struct Slow {
        room: usize,
        taken: Vec<u8>,
        tries: usize,
    }

    impl Write for Slow {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.tries += 1;
            let n = text.len().min(self.room);
            self.room -= n;
            self.taken.extend(&text[..n]);
            if n == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(n) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stopped_terminal_is_waited_for_once_and_used_again_when_it_goes_on() {
        let mut terminal = Terminal::new(Slow { room: 3, taken: Vec::new(), tries: 0 });
        terminal.write(b"hello", Duration::from_millis(20));
        assert!(terminal.stuck);
        terminal.device.tries = 0;
        terminal.write(b"lost", Duration::from_secs(3600));
        assert_eq!(terminal.device.tries, 1, "no second wait");
        terminal.device.room = 100;
        terminal.write(b"back", Duration::ZERO);
        assert!(!terminal.stuck);
        assert_eq!(terminal.device.taken, b"helback");
    }

    #[test]
    fn lines_end_for_raw_terminals_too() {
        assert_eq!(carriage_returns(b"a\nb\n"), b"a\r\nb\r\n");
    }
}
