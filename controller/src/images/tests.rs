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
