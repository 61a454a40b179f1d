//! What the head of an answer says, and whether its body goes on where the last one stopped.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use reqwest::header::{
    CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, LAST_MODIFIED, RETRY_AFTER,
};
use reqwest::{Response, StatusCode, Url};

/// What tells one version of a file from another, at one URL: servers of the same file need not agree on a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    from: Origin,
    header: HeaderName,
    pub(super) value: Vec<u8>,
}

/// Who answers: a hash of the URL after all redirects, since the URL itself may hold secrets. Its query, in which
/// tokens come and go, is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin(u64);

impl Origin {
    pub(super) fn of(url: &Url) -> Self {
        let mut hash = DefaultHasher::new();
        (url.scheme(), url.host_str(), url.port_or_known_default(), url.path()).hash(&mut hash);
        Self(hash.finish())
    }
}

impl Mark {
    fn of(headers: &HeaderMap, from: Origin) -> Option<Self> {
        [ETAG, LAST_MODIFIED].into_iter().find_map(|header| {
            let value = headers.get(&header)?.as_bytes().to_vec();
            Some(Self { from, header, value })
        })
    }

    /// Whether it may be sent with a range to whoever is asked: a redirect may lead to somebody else this time.
    pub(super) fn binds(&self, asked: Origin) -> bool {
        self.from == asked && self.is_strong()
    }

    /// A weak entity tag may not be sent with a range (RFC 9110 section 13.1.5); we compare it ourselves.
    fn is_strong(&self) -> bool {
        !self.value.starts_with(b"W/")
    }
}

/// The head of an answer.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    from: Origin,
    length: Option<u64>,
    /// First byte and whole length of `Content-Range: bytes 5-9/10`; either may be `*`.
    range: Option<(Option<u64>, Option<u64>)>,
    /// How long the server asks to be left alone.
    retry_after: Option<Duration>,
    pub(super) mark: Option<Mark>,
}

/// What is known of the image when an answer comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    /// Bytes that came before.
    pub(super) received: u64,
    /// Bytes announced in all.
    pub(super) total: Option<u64>,
    /// Version of the file at this place, if it answered before.
    pub(super) mark: Option<&'a Mark>,
}

/// What to do with the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Take it, after dropping `skip` bytes of it.
    Take { skip: u64, total: Option<u64> },
    /// The server has trouble of its own, and may have said how long to leave it alone.
    Later(Option<Duration>),
    /// It will not serve it.
    Refused,
    /// It has another image, by this of it.
    Differs(&'static str),
    /// It has no more of it than came already.
    NoMore,
    /// All of it has come already, which nobody had told before.
    Whole,
}

impl Head {
    pub(super) fn of(response: &Response) -> Self {
        let headers = response.headers();
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let from = Origin::of(response.url());
        Self {
            status: response.status(),
            from,
            length: text(CONTENT_LENGTH).and_then(|value| value.parse().ok()),
            range: text(CONTENT_RANGE).and_then(parse_range),
            // The other form, a date, depends on clocks that agree.
            retry_after: text(RETRY_AFTER).and_then(|value| value.parse().ok()).map(Duration::from_secs),
            mark: Mark::of(headers, from),
        }
    }

    /// Whether the body is, or goes on with, the image that is known.
    pub(super) fn judge(&self, known: Known<'_>) -> Verdict {
        let resumed = known.received > 0;
        let (total, skip) = match self.status {
            StatusCode::OK => (self.length, known.received),
            StatusCode::PARTIAL_CONTENT if resumed => match self.range {
                Some((Some(first), total)) if first == known.received => {
                    let by_length = self.length.and_then(|length| length.checked_add(first));
                    (total.or(by_length), 0)
                }
                _ => return Verdict::Differs("range"),
            },
            StatusCode::RANGE_NOT_SATISFIABLE if resumed => {
                let all = self.range == Some((None, Some(known.received)));
                return if all && known.total.is_none() { Verdict::Whole } else { Verdict::NoMore };
            }
            status if matches!(status.as_u16(), 408 | 425 | 429) || status.is_server_error() => {
                return Verdict::Later(self.retry_after);
            }
            _ => return Verdict::Refused,
        };
        if !resumed {
            return Verdict::Take { skip, total };
        }
        let before = known.mark.filter(|mark| mark.from == self.from);
        match (before, &self.mark) {
            (Some(before), Some(now)) if before != now => return Verdict::Differs("version mark"),
            // At a place that has not answered before nothing but the length can agree.
            (None, _) if total.is_none() => return Verdict::Differs("length"),
            _ => {}
        }
        if known.total != total && (known.total.is_some() || before.is_none()) {
            return Verdict::Differs("length");
        }
        Verdict::Take { skip, total: known.total }
    }
}

fn parse_range(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let first = if range == "*" { None } else { Some(range.split_once('-')?.0.parse().ok()?) };
    Some((first, total.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Origin = Origin(1);
    const THERE: Origin = Origin(2);

    fn mark(from: Origin, tag: &str) -> Option<Mark> {
        Some(Mark { from, header: ETAG, value: tag.as_bytes().to_vec() })
    }

    fn head(status: u16, length: Option<u64>, range: Option<&str>, tag: &str) -> Head {
        let status = StatusCode::from_u16(status).unwrap();
        let (range, mark) = (range.and_then(parse_range), mark(HERE, tag));
        Head { status, from: HERE, length, range, retry_after: None, mark }
    }

    #[test]
    fn a_body_is_taken_only_where_it_goes_on_with_the_same_image() {
        use Verdict::{Differs, Later, NoMore, Refused, Take, Whole};
        let (one, theirs) = (mark(HERE, "1"), mark(THERE, "9"));
        let fresh = Known { received: 0, total: None, mark: None };
        let resumed = Known { received: 10, total: Some(30), mark: one.as_ref() };
        let elsewhere = Known { mark: None, ..resumed };
        let unknown_length = Known { total: None, ..resumed };
        // The same place, which sends us to somebody else than before.
        let redirected = Known { mark: theirs.as_ref(), ..resumed };
        let take = |skip, total| Take { skip, total };
        let seconds = |count| Some(Duration::from_secs(count));
        let rest = Some("bytes 10-29/30");
        let table = [
            (head(200, Some(30), None, "1"), fresh, take(0, Some(30))),
            (head(200, None, None, "1"), fresh, take(0, None)),
            (head(206, Some(20), rest, "1"), fresh, Refused),
            (head(206, Some(20), rest, "1"), resumed, take(0, Some(30))),
            (head(206, Some(20), Some("bytes 10-29/*"), "1"), resumed, take(0, Some(30))),
            (head(206, Some(21), Some("bytes 10-30/*"), "1"), resumed, Differs("length")),
            (head(206, Some(20), Some("bytes 11-29/30"), "1"), resumed, Differs("range")),
            (head(206, Some(20), None, "1"), resumed, Differs("range")),
            (head(206, Some(20), rest, "2"), resumed, Differs("version mark")),
            (head(206, Some(20), Some("bytes 10-30/31"), "1"), resumed, Differs("length")),
            (head(200, Some(30), None, "1"), resumed, take(10, Some(30))),
            (head(200, Some(31), None, "1"), resumed, Differs("length")),
            (head(206, Some(20), rest, "2"), elsewhere, take(0, Some(30))),
            (head(206, None, Some("bytes 10-29/*"), "2"), elsewhere, Differs("length")),
            (head(206, None, Some("bytes 10-29/*"), "1"), unknown_length, take(0, None)),
            (head(206, Some(20), rest, "2"), Known { total: None, ..elsewhere }, Differs("length")),
            (head(206, Some(20), rest, "2"), redirected, take(0, Some(30))),
            (head(206, Some(20), Some("bytes 10-30/31"), "2"), redirected, Differs("length")),
            (head(206, None, Some("bytes 10-29/*"), "2"), redirected, Differs("length")),
            (head(206, Some(20), Some("bytes */30"), "1"), resumed, Differs("range")),
            (head(416, None, None, "1"), resumed, NoMore),
            (head(416, None, Some("bytes */10"), "1"), resumed, NoMore),
            (head(416, None, None, "1"), unknown_length, NoMore),
            (head(416, None, Some("bytes */9"), "1"), unknown_length, NoMore),
            (head(416, None, Some("bytes */10"), "1"), unknown_length, Whole),
            (head(503, None, None, "1"), resumed, Later(None)),
            (Head { retry_after: seconds(7), ..head(503, None, None, "1") }, resumed, Later(seconds(7))),
            (head(429, None, None, "1"), fresh, Later(None)),
            (head(404, None, None, "1"), resumed, Refused),
        ];
        for (head, known, expected) in table {
            assert_eq!(head.judge(known), expected, "{head:?} {known:?}");
        }
    }

    #[test]
    fn a_mark_goes_with_a_range_only_to_whom_it_is_from_and_when_it_is_strong() {
        let origin = |url: &str| Origin::of(&url.parse().unwrap());
        let own = origin("https://images.example/a.img?token=1");
        assert_eq!(own, origin("https://images.example:443/a.img?token=2"));
        for other in [
            "http://images.example/a.img",
            "https://images.example/b.img",
            "https://images.example:8443/a.img",
        ] {
            assert_ne!(own, origin(other), "{other}");
        }
        for (from, tag, binds) in [(own, "\"1\"", true), (own, "W/\"1\"", false), (THERE, "\"1\"", false)] {
            assert_eq!(mark(from, tag).unwrap().binds(own), binds, "{tag}");
        }
    }
}
