//! `farrier.mirrors`: further places of the same image.

use std::fmt;
use std::str::FromStr;

use super::NotAccepted;
use crate::contract::web_url::WebUrl;

/// Most mirrors: each is tried several times before a run gives up.
const MAX_MIRRORS: usize = 8;

/// One to eight further URLs of the image, separated by commas. A comma within a URL is written `%2C`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrors(Vec<WebUrl>);

impl Mirrors {
    /// The mirrors in order of preference.
    pub fn iter(&self) -> impl Iterator<Item = &WebUrl> {
        self.0.iter()
    }
}

impl FromStr for Mirrors {
    type Err = NotAccepted;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // What was given is not shown: a URL may hold a secret.
        let error = || NotAccepted::new("…", "one to eight http or https URLs, separated by commas");
        let urls: Vec<WebUrl> =
            text.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| error())?;
        if urls.len() > MAX_MIRRORS { Err(error()) } else { Ok(Self(urls)) }
    }
}

impl fmt::Display for Mirrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, url) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str(",")?;
            }
            f.write_str(url.as_str())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_urls_read_as_they_are_written() {
        for text in ["http://a/b", "http://a/b,https://[fd00::1]:8443/c?d=e,http://f/"] {
            assert_eq!(text.parse::<Mirrors>().unwrap().to_string(), text);
        }
        assert_eq!("http://a/1,http://b/2".parse::<Mirrors>().unwrap().iter().count(), 2);
    }

    #[test]
    fn what_is_no_list_of_urls_is_refused_without_showing_it() {
        let nine = ["http://a/"; 9].join(",");
        for text in ["", ",", "http://a/,", "a", "ftp://a/b", "http://a/,secret", &nine] {
            let error = text.parse::<Mirrors>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
