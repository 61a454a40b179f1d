//! Files of objects.

use farrier_shared::contract::Name;

use super::manifest::read;

/// A YAML file, read as `apply` does.
pub fn manifest(bytes: &[u8]) {
    let Ok(namespace) = "default".parse::<Name>() else { return };
    let text = String::from_utf8_lossy(bytes);
    if let Ok(objects) = read("fuzz.yaml", &text, &namespace) {
        assert!(objects.len() <= text.lines().count());
        for object in objects {
            assert_eq!(object.body["metadata"]["namespace"], object.namespace.as_str());
        }
    }
}
