//! What a client of the artefact listener gets.

use axum::http::Request;
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::*;

async fn ask(
    dir: &std::path::Path,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> (StatusCode, HeaderMap, Vec<u8>) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = router(dir.to_owned()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    (parts.status, parts.headers, body.collect().await.unwrap().to_bytes().to_vec())
}

fn text(headers: &HeaderMap, name: HeaderName) -> String {
    headers.get(name).map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn whole_files_and_ranges_come_with_length_and_version() {
    let dir = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::create_dir(dir.path().join("os")).unwrap();
    std::fs::write(dir.path().join("os/disk.img"), &content).unwrap();

    let (status, headers, body) = ask(dir.path(), "GET", "/images/os/disk.img", &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert!(body == content);
    assert_eq!(text(&headers, header::CONTENT_LENGTH), "4000000");
    assert_eq!(text(&headers, header::ACCEPT_RANGES), "bytes");
    let etag = text(&headers, header::ETAG);

    let (status, headers, body) = ask(dir.path(), "HEAD", "/images/os/disk.img", &[]).await;
    assert_eq!((status, body.len()), (StatusCode::OK, 0));
    assert_eq!(text(&headers, header::CONTENT_LENGTH), "4000000");

    let range = ("range", "bytes=3999990-");
    for extra in [vec![range], vec![range, ("if-range", etag.as_str())]] {
        let (status, headers, body) = ask(dir.path(), "GET", "/images/os/disk.img", &extra).await;
        assert_eq!(status, StatusCode::PARTIAL_CONTENT);
        assert_eq!(body, content[3_999_990..]);
        assert_eq!(text(&headers, header::CONTENT_RANGE), "bytes 3999990-3999999/4000000");
    }
    let stale = [range, ("if-range", "\"other\"")];
    let (status, _, body) = ask(dir.path(), "GET", "/images/os/disk.img", &stale).await;
    assert_eq!((status, body.len()), (StatusCode::OK, content.len()));

    let (status, headers, _) =
        ask(dir.path(), "GET", "/images/os/disk.img", &[("range", "bytes=4000000-")]).await;
    assert_eq!(status, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(text(&headers, header::CONTENT_RANGE), "bytes */4000000");

    let (status, ..) = ask(dir.path(), "GET", "/images/os/disk.img", &[("if-none-match", &etag)]).await;
    assert_eq!(status, StatusCode::NOT_MODIFIED);

    std::fs::write(dir.path().join("os/disk.img"), b"new").unwrap();
    let (_, headers, _) = ask(dir.path(), "GET", "/images/os/disk.img", &[]).await;
    assert_ne!(text(&headers, header::ETAG), etag);
}

#[tokio::test]
async fn nothing_outside_the_folder_is_served() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("images");
    std::fs::create_dir_all(dir.join("sub")).unwrap();
    std::fs::write(outer.path().join("secret"), b"secret").unwrap();
    std::fs::write(dir.join("real"), b"real").unwrap();
    let link = |to: &std::path::Path, name: &str| std::os::unix::fs::symlink(to, dir.join(name)).unwrap();
    link(&outer.path().join("secret"), "absolute");
    link("../secret".as_ref(), "relative");
    link("real".as_ref(), "inside");
    nix::unistd::mkfifo(&dir.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();

    assert_eq!(ask(&dir, "GET", "/images/inside", &[]).await.2, b"real");
    let refused = [
        "/images/../secret",
        "/images/%2e%2e/secret",
        "/images/..%2fsecret",
        "/images/sub/../../secret",
        "/images//etc/passwd",
        "/images/%2fetc/passwd",
        "/images/absolute",
        "/images/relative",
        "/images/sub",
        "/images/",
        "/images/fifo",
        "/images/none",
        "/images/real%00",
        "/images/%ff",
    ];
    for path in refused {
        let (status, _, body) = ask(&dir, "GET", path, &[]).await;
        assert_eq!((status, body.as_slice()), (StatusCode::NOT_FOUND, b"not found".as_slice()), "{path}");
    }
    let (status, ..) = ask(&dir, "POST", "/images/real", &[]).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn long_transfers_beyond_the_room_are_put_off_and_short_ones_are_served() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("os.img"), vec![7; 4 << 20]).unwrap();
    std::fs::write(dir.path().join("vmlinuz"), vec![7; 1000]).unwrap();
    let router = with_room(dir.path().to_owned(), Room::new(2, 1000));
    let ask = |method: &str, path: &str, range: &str| {
        let request = Request::builder().method(method).uri(path).header("range", range);
        router.clone().oneshot(request.body(Body::empty()).unwrap())
    };
    let mut under_way = Vec::new();
    for _ in 0..2 {
        let response = ask("GET", "/images/os.img", "").await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        under_way.push(response);
    }
    let refused = ask("GET", "/images/os.img", "").await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(text(refused.headers(), header::RETRY_AFTER), "30");

    for (method, path, range, status) in [
        ("GET", "/images/vmlinuz", "", 200),
        ("HEAD", "/images/os.img", "", 200),
        ("GET", "/images/os.img", "bytes=0-999", 206),
        ("GET", "/images/os.img", "bytes=0-1000", 503),
        ("GET", "/healthz", "", 200),
    ] {
        let response = ask(method, path, range).await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{method} {path} {range}");
    }

    // One that was read to its end gives its place back, and so does one whose client went away.
    let whole = under_way.pop().unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_eq!(whole.len(), 4 << 20);
    let next = ask("GET", "/images/os.img", "").await.unwrap();
    assert_eq!(next.status(), StatusCode::OK);
    drop(under_way);
    let next = ask("GET", "/images/os.img", "").await.unwrap();
    assert_eq!(next.status(), StatusCode::OK);
}
