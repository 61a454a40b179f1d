//! Watches one interface for the loss and return of its link.

use futures_util::StreamExt as _;
use rtnetlink::MulticastGroup;
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::LinkFlags;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::family::{Desk, News};
use super::links::Link;

/// What is known of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    /// Nothing yet: the interface is coming up for the first time.
    #[default]
    Fresh,
    Up,
    Away,
}

impl Known {
    /// Takes in whether there is a carrier; whether the link was away and is back.
    fn see(&mut self, carrier: bool) -> bool {
        let was_away = *self == Self::Away;
        *self = match (carrier, *self) {
            (true, _) => Self::Up,
            (false, Self::Fresh) => Self::Fresh,
            (false, _) => Self::Away,
        };
        carrier && was_away
    }
}

/// Watches while the returned tasks live: wakes `back` and tells the desk each time the link returns.
pub(super) fn watch(link: Link, back: watch::Sender<()>, desk: Desk) -> JoinSet<()> {
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
        let mut known = Known::default();
        while let Some((message, _)) = messages.next().await {
            let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(message)) = message.payload else {
                continue;
            };
            if message.header.index != link.index {
                continue;
            }
            let before = known;
            let flags = message.header.flags;
            let is_back = known.see(flags.contains(LinkFlags::LowerUp) && flags.contains(LinkFlags::Up));
            if known == Known::Away && before != known {
                tracing::warn!(interface = %link.name, "the link is lost");
            }
            if is_back {
                tracing::info!(interface = %link.name, "the link is back");
                back.send_replace(());
                desk.tell(News::LinkBack).await;
            }
        }
    });
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_link_that_was_up_before_comes_back() {
        let mut known = Known::default();
        let seen: Vec<bool> =
            [false, true, true, false, false, true, true, false, true].map(|c| known.see(c)).to_vec();
        assert_eq!(seen, [false, false, false, false, false, true, false, false, true]);
    }
}
