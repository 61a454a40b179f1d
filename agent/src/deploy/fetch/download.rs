//! One image on its way, through whatever interruptions and from whatever place.

use std::time::Duration;

use bytes::{Buf as _, Bytes};
use reqwest::Response;
use reqwest::header::{ACCEPT_ENCODING, IF_RANGE, RANGE};
use tokio::time::Instant;

use super::answer::{Head, Known, Origin, Verdict};
use super::pace::Pace;
use super::places::Places;
use super::{FOREIGN_REDIRECT, ImageClient, Source, TOO_MANY_REDIRECTS};
use crate::callback::root_cause;
use crate::deploy::DeployError;

/// One image on its way.
#[derive(Debug)]
pub(in crate::deploy) struct Download {
    client: ImageClient,
    places: Places,
    /// When the first attempt failed since the last byte. Not the time of that byte: a slow disk is no failure.
    failing_since: Option<Instant>,
    /// A place has answered well, and no byte has come of it yet.
    answered: bool,
    /// How often that has come to nothing since the last byte.
    barren: u32,
    pace: Pace,
    /// Bytes handed out.
    received: u64,
    /// Bytes still to drop, since a server that knows no ranges starts anew.
    skip: u64,
    /// Bytes announced.
    pub(in crate::deploy) total: Option<u64>,
    response: Option<Response>,
    /// Why the connection is to be left after the bytes just handed out.
    left: Option<Trouble>,
}

impl Download {
    pub(super) fn new(client: &ImageClient, source: &Source) -> Self {
        let minimum = source.min_rate.bytes_per_second();
        Self {
            client: client.clone(),
            places: Places::new(&source.image, &source.mirrors),
            failing_since: None,
            answered: false,
            barren: 0,
            pace: Pace::new(minimum, client.timing.rate_window),
            received: 0,
            skip: 0,
            total: None,
            response: None,
            left: None,
        }
    }

    /// The next bytes; [`None`] at the end.
    pub(in crate::deploy) async fn next(&mut self) -> Result<Option<Bytes>, DeployError> {
        loop {
            if let Some(trouble) = self.left.take() {
                self.recover(trouble).await?;
            }
            match self.step().await {
                Ok(Step::Bytes(bytes)) if bytes.is_empty() => {}
                Ok(Step::Bytes(bytes)) => return Ok(Some(bytes)),
                Ok(Step::End) => return Ok(None),
                Err(trouble) => self.left = Some(trouble),
            }
        }
    }

    /// One piece from the connection there is, or from a new one.
    async fn step(&mut self) -> Result<Step, Trouble> {
        let mut response = match self.response.take() {
            Some(response) => response,
            None => match self.connect().await? {
                Some(response) => response,
                None => return Ok(Step::End),
            },
        };
        let asked = Instant::now();
        let stall = self.client.timing.stall;
        let chunk = match tokio::time::timeout(stall, response.chunk()).await {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) => return Err(Trouble::Passing(Cause::Text(root_cause(&error.without_url())))),
            Err(_) => return Err(no_byte_for(stall)),
        };
        let Some(mut bytes) = chunk else {
            let all = self.skip == 0 && self.total.is_none_or(|total| self.received >= total);
            let early = || Trouble::Passing(Cause::Text("the connection ended early".to_owned()));
            return if all { Ok(Step::End) } else { Err(early()) };
        };
        if let Some(rate) = self.pace.took(bytes.len() as u64, asked.elapsed()) {
            self.left = Some(Trouble::Passing(Cause::Slow(rate)));
        } else {
            self.response = Some(response);
        }
        let skipped = self.skip.min(bytes.len() as u64);
        self.skip -= skipped;
        bytes.advance(usize::try_from(skipped).unwrap_or(usize::MAX));
        if !bytes.is_empty() {
            self.received += bytes.len() as u64;
            self.places.progressed();
            (self.failing_since, self.answered, self.barren) = (None, false, 0);
        }
        Ok(Step::Bytes(bytes))
    }

    /// A response of the current place that goes on where the last one stopped; [`None`] when that was the end.
    async fn connect(&mut self) -> Result<Option<Response>, Trouble> {
        let place = self.places.current();
        let mut request = self.client.http.get(place.url.as_str()).header(ACCEPT_ENCODING, "identity");
        if self.received > 0 {
            request = request.header(RANGE, format!("bytes={}-", self.received));
            if let Some(mark) = place.mark.as_ref().filter(|mark| mark.binds(Origin::of(&place.url.to_url())))
            {
                request = request.header(IF_RANGE, mark.value.as_slice());
            }
        }
        let answer = tokio::time::timeout(self.client.timing.stall, request.send()).await;
        let answer = answer.map_err(|_| Trouble::Passing(Cause::Text("no answer".to_owned())))?;
        let response = answer.map_err(|error| self.unanswered(&error.without_url()))?;
        let head = Head::of(&response);
        let known = Known { received: self.received, total: self.total, mark: place.mark.as_ref() };
        let host = response.url().host_str().unwrap_or_default().to_owned();
        let status = head.status.as_u16();
        match head.judge(known) {
            Verdict::Take { skip, total } => {
                (self.skip, self.total) = (skip, total);
                let place = self.places.current_mut();
                place.mark = place.mark.take().filter(|_| self.received > 0).or(head.mark);
                self.pace.restart();
                self.answered = true;
                Ok(Some(response))
            }
            Verdict::Whole => Ok(None),
            Verdict::Later(asked) => Err(Trouble::Passing(Cause::Status { status, host, asked })),
            Verdict::Refused => Err(Trouble::Lasting(DeployError::Status { status, host })),
            Verdict::Differs(what) => Err(Trouble::Lasting(self.replaced(what))),
            Verdict::NoMore => {
                Err(Trouble::Lasting(self.truncated().unwrap_or_else(|| self.replaced("length"))))
            }
        }
    }

    fn unanswered(&self, error: &reqwest::Error) -> Trouble {
        let text = root_cause(error);
        if !error.is_redirect() {
            return Trouble::Passing(Cause::Text(text));
        }
        let known = [FOREIGN_REDIRECT, TOO_MANY_REDIRECTS].into_iter().find(|known| text == *known);
        let cause = known.unwrap_or("in a way that cannot be followed");
        Trouble::Lasting(DeployError::Redirect { host: self.host(), cause })
    }

    /// Drops the connection, turns to the next place, and waits where it is time to; or gives up.
    async fn recover(&mut self, trouble: Trouble) -> Result<(), DeployError> {
        self.response = None;
        let (host, received) = (self.host(), self.received);
        let cause = match trouble {
            Trouble::Lasting(error) => {
                tracing::warn!(host, received, %error, "this place of the image is of no use");
                return if self.places.strike() { Ok(()) } else { Err(error) };
            }
            Trouble::Passing(cause) => cause,
        };
        let timing = &self.client.timing;
        let failing = self.failing_since.get_or_insert_with(Instant::now).elapsed();
        self.barren += u32::from(std::mem::take(&mut self.answered));
        let enough = timing.attempts.saturating_mul(self.places.alive());
        let round = self.places.failed();
        if self.pace.slow() >= enough || self.barren >= enough || failing >= timing.give_up {
            return Err(self.give_up(host, cause));
        }
        tracing::warn!(host, received, attempt = self.places.failures(), %cause, "image download interrupted");
        if round > 0 {
            let wait = crate::callback::back_off(round, timing.first_wait, timing.longest_wait);
            let asked = cause.asked().min(timing.longest_asked);
            tokio::time::sleep(wait.max(asked)).await;
        }
        Ok(())
    }

    fn give_up(&self, host: String, cause: Cause) -> DeployError {
        let received = self.received;
        match cause {
            Cause::Status { status, host, .. } => DeployError::Status { status, host },
            Cause::Slow(rate) => DeployError::TooSlow { host, rate, received },
            Cause::Text(cause) => {
                let attempts = self.places.failures();
                let expected = self.total.filter(|total| received > 0 && received < *total);
                match expected {
                    Some(expected) => DeployError::Truncated { host, received, expected },
                    None => DeployError::Transport { host, cause, received, attempts },
                }
            }
        }
    }

    fn host(&self) -> String {
        self.places.current().host.clone()
    }

    fn truncated(&self) -> Option<DeployError> {
        let expected = self.total.filter(|total| self.received > 0 && self.received < *total)?;
        Some(DeployError::Truncated { host: self.host(), received: self.received, expected })
    }

    fn replaced(&self, what: &'static str) -> DeployError {
        DeployError::Replaced { host: self.host(), what, received: self.received }
    }
}

enum Step {
    /// Maybe none, when all were to be dropped.
    Bytes(Bytes),
    End,
}

/// Why a connection brings no more.
#[derive(Debug)]
enum Trouble {
    /// Another attempt there may do.
    Passing(Cause),
    /// No further attempt there would.
    Lasting(DeployError),
}

/// Why an attempt is worth another.
#[derive(Debug)]
enum Cause {
    Status {
        status: u16,
        host: String,
        /// How long the server wants to be left alone.
        asked: Option<Duration>,
    },
    /// Bytes per second.
    Slow(u64),
    Text(String),
}

impl Cause {
    fn asked(&self) -> Duration {
        match self {
            Self::Status { asked, .. } => asked.unwrap_or_default(),
            Self::Slow(_) | Self::Text(_) => Duration::ZERO,
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status { status, host, .. } => write!(f, "HTTP {status} from {host}"),
            Self::Slow(rate) => write!(f, "only {rate} bytes per second"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

fn no_byte_for(stall: Duration) -> Trouble {
    Trouble::Passing(Cause::Text(format!("no byte for {} s", stall.as_secs())))
}
