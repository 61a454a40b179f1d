//! Checksum files.

use farrier_shared::contract::WebUrl;
use farrier_shared::lifecycle::digest_url::parse_checksum_file;

/// The image's name on the first line, then the file. A digest that is found stands in the file.
pub fn checksum(bytes: &[u8]) {
    let end = bytes.iter().position(|b| *b == b'\n').unwrap_or(0);
    let (name, file) = bytes.split_at(end);
    let url = format!("https://images.example/{}", String::from_utf8_lossy(name));
    let Ok(url) = url.parse::<WebUrl>() else { return };
    if let Ok(digest) = parse_checksum_file(file, &url) {
        let text = String::from_utf8_lossy(file).to_ascii_lowercase();
        let digest = digest.to_string();
        assert!(text.contains(digest.trim_start_matches("sha256:")), "{digest} is not in the file");
    }
}
