//! Tokens and nonces: what they look like, and that nobody sees them.

use farrier_shared::contract::{BootNonce, Token};
use proptest::prelude::*;

#[test]
fn only_43_characters_of_base64url_are_a_token() {
    let good = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM-_09";
    assert_eq!(good.len(), 43);
    assert!(good.parse::<Token>().is_ok() && good.parse::<BootNonce>().is_ok());
    for bad in [
        "",
        &good[1..],
        &format!("{good}A"),
        &good.replace('-', "+"),
        &good.replace('_', "/"),
        &good.replace('a', "="),
    ] {
        let error = bad.parse::<Token>().unwrap_err();
        assert!(bad.is_empty() || !error.to_string().contains(bad));
    }
}

#[test]
fn debug_and_decoding_errors_withhold_the_value() {
    let token: Token = "S".repeat(43).parse().unwrap();
    assert_eq!(format!("{token:?}"), "Token(redacted)");
    let error = serde_json::from_str::<Token>(r#""SECRET""#).unwrap_err();
    assert!(!error.to_string().contains("SECRET"));
}

proptest! {
    #[test]
    fn random_bytes_make_distinct_well_formed_tokens(a in any::<[u8; 32]>(), b in any::<[u8; 32]>()) {
        let (first, second) = (Token::from_random(a), Token::from_random(b));
        prop_assert_eq!(first.expose().len(), 43);
        prop_assert!(first.expose().parse::<Token>().is_ok());
        prop_assert_eq!(first.matches(second.expose()), a == b);
        let json = serde_json::to_string(&first).unwrap();
        prop_assert_eq!(serde_json::from_str::<Token>(&json).unwrap(), first);
    }
}
