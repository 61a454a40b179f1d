//! Watches one interface for the loss and return of its link.

use std::time::Duration;

use futures_util::StreamExt as _;
use rtnetlink::MulticastGroup;
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::LinkFlags;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::family::{Desk, News};
use super::links::Link;
use super::netlink::Netlink;

/// How long a link may take to get a carrier before anything is sent all the same.
pub(super) const CARRIER_WAIT: Duration = Duration::from_secs(10);
/// Between looks at a carrier.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// What is known of a link: nothing at first, while it is coming up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Carrier {
    /// Whether there is something at the other end.
    pub(super) up: bool,
    /// How often it came up.
    pub(super) times: u32,
}

impl Carrier {
    /// Takes in whether there is a carrier; whether that is news.
    fn see(&mut self, up: bool) -> bool {
        let is_new = self.up != up;
        self.up = up;
        if is_new && up {
            self.times = self.times.saturating_add(1);
        }
        is_new
    }
}

/// Watches while the returned tasks live: tells those who wait of each change, and the desk each time the link returns.
pub(super) fn watch(link: Link, state: watch::Sender<Carrier>, desk: Desk) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let (connection, _handle, mut messages) =
        match rtnetlink::new_multicast_connection(&[MulticastGroup::Link]) {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!(interface = %link.name, %error, "the link is not watched");
                return tasks;
            }
        };
    tasks.spawn(connection);
    tasks.spawn(async move {
        // Without its handle the connection would end.
        let _handle = _handle;
        while let Some((message, _)) = messages.next().await {
            let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(message)) = message.payload else {
                continue;
            };
            if message.header.index != link.index {
                continue;
            }
            let flags = message.header.flags;
            let up = flags.contains(LinkFlags::LowerUp) && flags.contains(LinkFlags::Up);
            if !state.send_if_modified(|carrier| carrier.see(up)) {
                continue;
            }
            let times = state.borrow().times;
            if !up {
                tracing::warn!(interface = %link.name, "the link is lost");
            } else if times > 1 {
                tracing::info!(interface = %link.name, "the link is back");
                desk.tell(News::LinkBack).await;
            }
        }
    });
    tasks
}

/// Gives an interface a while to find a carrier, and notes it: one that was up before was never seen to come up.
pub(super) async fn await_carrier(netlink: &Netlink, index: u32, state: &watch::Sender<Carrier>) {
    let deadline = Instant::now() + CARRIER_WAIT;
    while Instant::now() < deadline {
        if netlink.has_carrier(index).await {
            state.send_if_modified(|carrier| carrier.see(true));
            return;
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_news_once_and_returns_are_counted() {
        let mut carrier = Carrier::default();
        let seen: Vec<(bool, u32)> = [false, true, true, false, false, true, true, false, true]
            .map(|up| (carrier.see(up), carrier.times))
            .to_vec();
        let expected = [
            (false, 0),
            (true, 1),
            (false, 1),
            (true, 1),
            (false, 1),
            (true, 2),
            (false, 2),
            (true, 2),
            (true, 3),
        ];
        assert_eq!(seen, expected);
    }
}
