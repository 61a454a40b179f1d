//! Several places of one image.

use farrier_shared::contract::options::MinRate;

use super::disk::FileTarget;
use super::image::{MIB, gpt_image};
use super::server::{Answer, Server};
use super::*;

const DISK: u64 = 5 * MIB as u64;

fn order_of(servers: &[&Server], image: &[u8]) -> Order {
    let urls: Vec<_> = servers.iter().map(|server| server.url()).collect();
    let source = Source { mirrors: urls[1..].to_vec(), ..Source::new(urls[0].clone()) };
    Order { source, ..order(servers[0], sha256(image)) }
}

async fn installs(order: &Order, image: &[u8]) {
    let target = FileTarget::new(DISK, 512);
    let outcome = run_order(order, &target, false).await.unwrap();
    assert_eq!(outcome.served, image.len() as u64);
    assert!(target.content()[34 * 512..image.len() - 512] == image[34 * 512..image.len() - 512]);
}

#[tokio::test]
async fn a_place_without_the_image_or_without_a_server_is_passed_over() {
    let image = gpt_image(3 * MIB, 512);
    for trouble in [Answer::Status(404), Answer::Status(503), Answer::StallAfter(0)] {
        let (bad, good) = (Server::start(&image, &[], trouble).await, Server::honest(&image).await);
        installs(&order_of(&[&bad, &good], &image), &image).await;
        assert_eq!(good.requests().len(), 1);
    }
    let (gone, good) = (Server::honest(&image).await, Server::honest(&image).await);
    let order = order_of(&[&gone, &good], &image);
    drop(gone);
    installs(&order, &image).await;
}

#[tokio::test]
async fn a_download_goes_on_at_another_place_where_it_broke_off() {
    let image = gpt_image(3 * MIB, 512);
    let first = Server::start(&image, &[Answer::CutAfter(MIB)], Answer::Status(500)).await;
    let second = Server::start(&image, &[Answer::CutAfter(MIB)], Answer::Status(500)).await;
    let third = Server::honest(&image).await;
    installs(&order_of(&[&first, &second, &third], &image), &image).await;
    let requests = [second.requests(), third.requests()].concat();
    assert!(requests[0].contains(&format!("range: bytes={MIB}-")), "{requests:?}");
    assert!(requests[1].contains(&format!("range: bytes={}-", 2 * MIB)), "{requests:?}");
    assert!(requests.iter().all(|request| !request.contains("if-range")), "its mark is not known there");
}

#[tokio::test]
async fn a_place_with_another_image_is_passed_over() {
    let image = gpt_image(3 * MIB, 512);
    let cut = Server::start(&image, &[Answer::CutAfter(MIB)], Answer::Honest).await;
    let other = Server::honest(&image[..2 * MIB]).await;
    installs(&order_of(&[&cut, &other], &image), &image).await;
    assert_eq!((cut.requests().len(), other.requests().len()), (2, 1));
    let replaced = Server::start(&image, &[Answer::CutAfter(MIB)], Answer::Replaced).await;
    installs(&order_of(&[&replaced, &other, &cut], &image), &image).await;
}

#[tokio::test]
async fn a_place_that_redirects_to_another_server_each_time_serves_one_image() {
    let image = gpt_image(3 * MIB, 512);
    let first = Server::start(&image, &[Answer::CutAfter(MIB)], Answer::Honest).await;
    // The same bytes, which that server marks in its own way.
    let second = Server::start(&image, &[], Answer::Replaced).await;
    let to = |server: &Server| Answer::Redirect(server.url().to_string());
    let front = Server::start(&[], &[to(&first)], to(&second)).await;
    installs(&order_of(&[&front], &image), &image).await;
    let request = &second.requests()[0];
    assert!(request.contains(&format!("range: bytes={MIB}-")) && !request.contains("if-range"), "{request}");
    // Longer bytes are another image all the same.
    let longer = Server::start(&gpt_image(4 * MIB, 512), &[], Answer::Replaced).await;
    let first = Server::start(&image, &[Answer::CutAfter(MIB)], Answer::Honest).await;
    let front = Server::start(&[], &[to(&first)], to(&longer)).await;
    let target = FileTarget::new(DISK, 512);
    let error = run_order(&order_of(&[&front], &image), &target, false).await.unwrap_err();
    assert!(error.reason().contains("changed during the download: its length"), "{error}");
}

#[tokio::test]
async fn a_mirror_with_other_bytes_of_the_same_length_is_found_out_by_the_digest() {
    let image = gpt_image(3 * MIB, 512);
    let mut wrong = image.clone();
    wrong[2 * MIB] ^= 1;
    let cut = Server::start(&image, &[Answer::CutAfter(MIB)], Answer::Status(404)).await;
    let other = Server::honest(&wrong).await;
    let target = FileTarget::new(DISK, 512);
    let error = run_order(&order_of(&[&cut, &other], &image), &target, false).await.unwrap_err();
    assert!(matches!(error, DeployError::DigestMismatch { .. }), "{error}");
    assert!(target.is_unbootable());
}

#[tokio::test]
async fn when_every_place_fails_the_run_does() {
    let image = gpt_image(3 * MIB, 512);
    let busy = Server::start(&[], &[], Answer::Status(503)).await;
    let missing = Server::start(&[], &[], Answer::Status(404)).await;
    let target = FileTarget::new(DISK, 512);
    let error = run_order(&order_of(&[&busy, &missing], &image), &target, false).await.unwrap_err();
    assert!(error.reason().starts_with("fetch: HTTP 503"), "{error}");
    assert!(target.is_untouched());
    assert!(busy.requests().len() > 1 && missing.requests().len() == 1);
}

#[tokio::test]
async fn a_server_slower_than_it_may_be_is_left_for_another_and_in_the_end_given_up() {
    let image = gpt_image(3 * MIB, 512);
    let slow = Server::start(&image, &[], Answer::Trickle).await;
    let good = Server::honest(&image).await;
    let mut order = order_of(&[&slow, &good], &image);
    // A rate that only the trickle misses, since the machine that tests may be busy.
    order.source.min_rate = MinRate::from_bytes_per_second(1 << 20);
    installs(&order, &image).await;
    assert_eq!(slow.requests().len(), 1);
    let target = FileTarget::new(DISK, 512);
    order.source.mirrors.clear();
    let error = run_order(&order, &target, false).await.unwrap_err();
    assert!(error.reason().contains("bytes per second, less than farrier.min-rate"), "{error}");
    assert!(target.is_untouched() || target.is_unbootable());
}
