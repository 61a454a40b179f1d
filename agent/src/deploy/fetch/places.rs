//! Where the image is, and whose turn it is.

use farrier_shared::contract::WebUrl;

use super::answer::Mark;

/// One place of the image.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) url: WebUrl,
    /// Host and port, for messages.
    pub(super) host: String,
    /// Version of the file there, once it has answered.
    pub(super) mark: Option<Mark>,
    /// It does not have this image.
    out: bool,
}

/// All places; one is current.
#[derive(Debug)]
pub(super) struct Places {
    all: Vec<Place>,
    current: usize,
    /// Attempts without progress, at all places together.
    failures: u32,
}

impl Places {
    pub(super) fn new(first: &WebUrl, mirrors: &[WebUrl]) -> Self {
        let place = |url: &WebUrl| Place { url: url.clone(), host: url.authority(), mark: None, out: false };
        let all = std::iter::once(first).chain(mirrors).map(place).collect();
        Self { all, current: 0, failures: 0 }
    }

    pub(super) fn current(&self) -> &Place {
        &self.all[self.current]
    }

    pub(super) fn current_mut(&mut self) -> &mut Place {
        &mut self.all[self.current]
    }

    /// Attempts without progress so far.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Bytes came.
    pub(super) fn progressed(&mut self) {
        self.failures = 0;
    }

    /// The current place failed in a way that may pass; turns to the next. How often all have failed by now when it
    /// is time to wait for that, 0 when the next may be tried at once.
    pub(super) fn failed(&mut self) -> u32 {
        self.failures = self.failures.saturating_add(1);
        self.turn();
        let alive = self.alive();
        if self.failures.is_multiple_of(alive) { self.failures / alive } else { 0 }
    }

    /// The current place does not have this image; turns to the next, if there is one.
    pub(super) fn strike(&mut self) -> bool {
        self.current_mut().out = true;
        self.turn();
        !self.current().out
    }

    fn turn(&mut self) {
        let count = self.all.len();
        let next = (1..=count).map(|step| (self.current + step) % count).find(|place| !self.all[*place].out);
        self.current = next.unwrap_or(self.current);
    }

    /// How many may have the image; at least 1.
    pub(super) fn alive(&self) -> u32 {
        let alive = self.all.iter().filter(|place| !place.out).count();
        u32::try_from(alive).unwrap_or(u32::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(hosts: &[&str]) -> Places {
        let urls: Vec<WebUrl> =
            hosts.iter().map(|host| format!("http://{host}/x").parse().unwrap()).collect();
        Places::new(&urls[0], &urls[1..])
    }

    #[test]
    fn one_place_is_tried_again_after_ever_longer_waits() {
        let mut places = places(&["a"]);
        assert_eq!([places.failed(), places.failed(), places.failed()], [1, 2, 3]);
        places.progressed();
        assert_eq!([places.failed(), places.failed()], [1, 2]);
    }

    #[test]
    fn the_next_place_is_tried_at_once_and_all_of_them_before_waiting() {
        let mut places = places(&["a", "b", "c"]);
        let steps: Vec<_> = (0..6).map(|_| (places.failed(), places.current().host.clone())).collect();
        let expected = [(0, "b"), (0, "c"), (1, "a"), (0, "b"), (0, "c"), (2, "a")];
        assert_eq!(steps, expected.map(|(wait, host)| (wait, host.to_owned())));
    }

    #[test]
    fn a_place_struck_out_has_no_further_turn() {
        let mut places = places(&["a", "b", "c"]);
        assert!(places.strike());
        assert_eq!(places.current().host, "b");
        places.failed();
        places.failed();
        assert_eq!(places.current().host, "b");
        assert!(places.strike() && !places.strike());
    }
}
