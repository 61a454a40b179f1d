//! Who may talk to the API at all.

use super::*;

#[tokio::test]
async fn the_tcp_listener_asks_for_its_token() {
    let store = Store::in_memory().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("admin.token");
    let token = token_file(&file).unwrap();
    assert_eq!(token_file(&file).unwrap(), token);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let guarded = require_token(api(&store), token.clone());
    let good = format!("Bearer {}", token.expose());
    let table = [(None, 401), (Some("Bearer x".to_owned()), 401), (Some(good), 200)];
    for (header, status) in table {
        for path in ["/apis/v1/hosts", "/apis/v1/info"] {
            let mut request = Request::builder().uri(path);
            if let Some(value) = &header {
                request = request.header("authorization", value);
            }
            let answer = ask(&guarded, "127.0.0.1", request.body(Body::empty()).unwrap()).await;
            assert_eq!(answer.status.as_u16(), status, "{path}");
        }
    }
}

#[tokio::test]
async fn the_socket_belongs_to_its_owner_and_is_never_taken_from_a_running_controller() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("admin.sock");
    let first = bind_unix(&path).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert!(bind_unix(&path).unwrap_err().to_string().contains("another controller"));
    drop(first);
    bind_unix(&path).unwrap();
    let file = dir.path().join("precious");
    std::fs::write(&file, "x").unwrap();
    bind_unix(&file).unwrap_err();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x");
}
