//! One name by several servers at the same time: a server that is dead, or refuses, must not hide those that know.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

/// How long the addresses of one family are waited for once there are those of the other: servers are known that never
/// answer a question for IPv6 (RFC 8305, section 3, has 50 ms, for people who wait).
const GRACE: Duration = Duration::from_millis(500);

/// Why nobody gave an address.
#[derive(Debug)]
pub(super) enum Nothing<E> {
    /// Nobody said anything in time.
    Silence,
    /// What was said last.
    Said(E),
}

/// One question: of which family, and what comes of it.
pub(super) struct Question<F> {
    pub(super) is_v6: bool,
    pub(super) answer: F,
}

/// Asks all questions at once, for as long as `wait`, and returns the first addresses of each family; those of IPv6
/// first, as their order is the order of attempts.
///
/// # Errors
/// When no question led to an address.
pub(super) async fn ask<E, F>(questions: Vec<Question<F>>, wait: Duration) -> Result<Vec<IpAddr>, Nothing<E>>
where
    F: Future<Output = Result<Vec<IpAddr>, E>>,
{
    let mut open = [0_usize; 2];
    let mut asked: FuturesUnordered<_> = questions
        .into_iter()
        .map(|question| {
            let family = usize::from(question.is_v6);
            open[family] += 1;
            async move { (family, question.answer.await) }
        })
        .collect();
    let mut found: [Option<Vec<IpAddr>>; 2] = [None, None];
    let mut end = Instant::now() + wait;
    let mut last = Nothing::Silence;
    while (0..2).any(|family| open[family] > 0 && found[family].is_none()) {
        match timeout_at(end, asked.next()).await {
            Ok(Some((family, Ok(addresses)))) if !addresses.is_empty() => {
                open[family] -= 1;
                if found.iter().all(Option::is_none) {
                    end = end.min(Instant::now() + GRACE);
                }
                found[family].get_or_insert(addresses);
            }
            Ok(Some((family, answer))) => {
                open[family] -= 1;
                last = answer.err().map_or(last, Nothing::Said);
            }
            Ok(None) | Err(_) => break,
        }
    }
    let [v4, v6] = found;
    let all: Vec<IpAddr> = v6.into_iter().chain(v4).flatten().collect();
    if all.is_empty() { Err(last) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use super::*;

    type Answer = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, &'static str>>>>;

    const LONG: Duration = Duration::from_secs(60);

    fn says(text: &'static str) -> Question<Answer> {
        let ip: IpAddr = text.parse().unwrap();
        Question { is_v6: ip.is_ipv6(), answer: Box::pin(std::future::ready(Ok(vec![ip]))) }
    }

    fn refuses(is_v6: bool) -> Question<Answer> {
        Question { is_v6, answer: Box::pin(std::future::ready(Err("refused"))) }
    }

    fn is_silent(is_v6: bool) -> Question<Answer> {
        Question { is_v6, answer: Box::pin(std::future::pending()) }
    }

    async fn asked(questions: Vec<Question<Answer>>) -> String {
        match ask(questions, LONG).await {
            Ok(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(Nothing::Said(error)) => error.to_owned(),
            Err(Nothing::Silence) => "silence".to_owned(),
        }
    }

    #[tokio::test]
    async fn one_server_that_knows_is_enough() {
        let (a, b) = ("10.0.0.1", "fd00::1");
        let start = Instant::now();
        assert_eq!(asked(vec![is_silent(false), refuses(false), says(a)]).await, a);
        assert_eq!(asked(vec![refuses(false), refuses(true), says(a), says(b)]).await, "fd00::1 10.0.0.1");
        assert_eq!(asked(vec![says(a), says("10.0.0.2")]).await, a, "two servers may differ: not both");
        assert!(start.elapsed() < LONG / 10);
    }

    #[tokio::test]
    async fn a_family_nobody_answers_for_does_not_keep_the_other() {
        let start = Instant::now();
        assert_eq!(asked(vec![is_silent(true), says("10.0.0.1")]).await, "10.0.0.1");
        assert_eq!(asked(vec![refuses(true), says("10.0.0.1")]).await, "10.0.0.1");
        assert!(start.elapsed() < LONG / 10);
    }

    #[tokio::test]
    async fn when_nobody_knows_what_was_said_is_told() {
        assert_eq!(asked(vec![refuses(false), refuses(true)]).await, "refused");
        assert_eq!(asked(vec![]).await, "silence");
        let silent = ask(vec![is_silent(false), refuses(true)], Duration::from_millis(20)).await;
        assert!(matches!(silent, Err(Nothing::Said("refused"))));
        let silent = ask(vec![is_silent(false)], Duration::from_millis(20)).await;
        assert!(matches!(silent, Err(Nothing::<&str>::Silence)));
    }
}
