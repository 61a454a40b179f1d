//! Who asks, behind proxies, and how often.

use super::*;

#[tokio::test]
async fn s098_the_sixth_request_in_a_second_is_turned_away_before_anything_is_looked_at() {
    let rig = Rig::new().await;
    let ask_at_once = |client| {
        let request = Request::builder().uri("/api/v1/boot/lab/h1/wrong").body(Body::empty()).unwrap();
        ask(&rig.router, client, request)
    };
    for _ in 0..5 {
        assert!(not_found(&ask_at_once(CLIENT).await));
    }
    let answer = ask_at_once(CLIENT).await;
    assert_eq!((answer.status, answer.text().as_str()), (StatusCode::TOO_MANY_REQUESTS, "too many requests"));
    assert!(not_found(&ask_at_once("192.0.2.51").await));
    rig.fixture.clock.advance(Duration::from_secs(1));
    assert!(not_found(&ask_at_once(CLIENT).await));
}

#[test]
fn s098_forwarded_addresses_count_only_from_trusted_proxies() {
    let trusted: TrustedProxies = "192.0.2.1, 10.0.0.0/8, fd00::/8".parse().unwrap();
    let table: [(&str, &[&str], &str); 9] = [
        ("198.51.100.9", &["203.0.113.5"], "198.51.100.9"),
        ("192.0.2.1", &["203.0.113.5"], "203.0.113.5"),
        ("192.0.2.1", &["203.0.113.5, 10.1.1.1"], "203.0.113.5"),
        ("192.0.2.1", &["6.6.6.6, 203.0.113.5"], "203.0.113.5"),
        ("192.0.2.1", &["6.6.6.6", "203.0.113.5, nonsense"], "203.0.113.5"),
        ("192.0.2.1", &["10.1.1.1, 192.0.2.1"], "192.0.2.1"),
        ("192.0.2.1", &[], "192.0.2.1"),
        ("::ffff:192.0.2.1", &["2001:DB8:0:0::1"], "2001:db8::1"),
        ("fd00::1", &["::ffff:203.0.113.5"], "203.0.113.5"),
    ];
    for (peer, lines, expected) in table {
        let mut headers = axum::http::HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        let peer = std::net::SocketAddr::new(peer.parse().unwrap(), 1);
        assert_eq!(trusted.client(peer, &headers).to_string(), expected, "{peer} {lines:?}");
    }
    let mapped: TrustedProxies = "::ffff:192.0.2.1, ::ffff:10.0.0.0/104".parse().unwrap();
    for (peer, is_one) in [("192.0.2.1", true), ("192.0.2.2", false), ("10.9.9.9", true), ("11.0.0.1", false)]
    {
        assert_eq!(mapped.contains(peer.parse().unwrap()), is_one, "{peer}");
    }
    for bad in [
        "10.0.0.0/33",
        "10.0.0",
        "x",
        "10.0.0.1/",
        "::/129",
        "10.0.0.1/-1",
        "10.0.0.0/+8",
        "::ffff:0.0.0.0/90",
    ] {
        assert!(bad.parse::<TrustedProxies>().is_err(), "{bad}");
    }
    assert_eq!(" , ".parse::<TrustedProxies>().unwrap(), TrustedProxies::default());
}
