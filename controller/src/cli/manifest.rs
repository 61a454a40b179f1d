//! YAML files of objects: split into documents, each read as the kind it says it is, errors with file and line.

use farrier_shared::contract::Name;
use farrier_shared::resource::{Beskar7Machine, PhysicalHost, Resource, Secret};
use serde::Deserialize;

use super::failure::Failure;
use crate::admin::Kind;

/// One object of a file.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// Its kind.
    pub(crate) kind: Kind,
    /// Its namespace: its own, else that of the command line.
    pub(crate) namespace: Name,
    /// Its name.
    pub(crate) name: Name,
    /// File and first line, for errors.
    pub(crate) place: String,
    /// The object as JSON.
    pub(crate) body: serde_json::Value,
}

#[derive(Debug, Deserialize)]
struct Head {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: HeadMeta,
}

#[derive(Debug, Default, Deserialize)]
struct HeadMeta {
    namespace: Option<String>,
}

const HINT: &str = "correct the file; nothing was changed";

/// Every object of a file. `file` is its name, for errors.
///
/// # Errors
/// The first document that is not an object of a known kind, with file and line.
pub(crate) fn read(file: &str, text: &str, default_namespace: &Name) -> Result<Vec<Manifest>, Failure> {
    let mut manifests: Vec<Manifest> = Vec::new();
    for (first_line, document) in documents(text) {
        let manifest = read_one(file, first_line, &document, default_namespace)?;
        let same = |m: &&Manifest| {
            m.kind == manifest.kind && m.namespace == manifest.namespace && m.name == manifest.name
        };
        if let Some(earlier) = manifests.iter().find(same) {
            let problem =
                format!("{} {} is already defined at {}", manifest.kind, manifest.name, earlier.place);
            return Err(Failure::invalid(format!("{}: metadata.name", manifest.place), problem, HINT));
        }
        manifests.push(manifest);
    }
    if manifests.is_empty() {
        return Err(Failure::invalid(file, "no object in it", "write at least one document with a kind"));
    }
    Ok(manifests)
}

/// Documents with the number of the line each begins at, counted from one; empty ones left out.
fn documents(text: &str) -> Vec<(usize, String)> {
    let mut found = vec![(1, String::new())];
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        match (marked(line, "---"), marked(line, "..."), found.last_mut()) {
            // What follows the marker on its line belongs to the document; blanks keep its column.
            (Some(rest), ..) if !rest.trim().is_empty() => found.push((index + 1, format!("   {rest}\n"))),
            (Some(_), ..) | (_, Some(_), _) => found.push((index + 2, String::new())),
            // A directive before a document, such as `%YAML 1.2`.
            (.., Some((_, document))) if line.starts_with('%') && document.trim().is_empty() => {
                document.push('\n');
            }
            (.., Some((_, document))) => {
                document.push_str(line);
                document.push('\n');
            }
            (.., None) => {}
        }
    }
    let empty = |d: &str| d.lines().all(|l| l.trim().is_empty() || l.trim_start().starts_with('#'));
    found.retain(|(_, document)| !empty(document));
    found
}

/// What follows a marker at the begin of a line, if it is one.
fn marked<'l>(line: &'l str, marker: &str) -> Option<&'l str> {
    line.strip_prefix(marker).filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

fn read_one(
    file: &str,
    first_line: usize,
    document: &str,
    default_namespace: &Name,
) -> Result<Manifest, Failure> {
    let head: Head = serde_saphyr::from_str(document).map_err(|e| invalid(file, first_line, &e, false))?;
    let kind = match head.kind.as_str() {
        "PhysicalHost" => Kind::Host,
        "Beskar7Machine" => Kind::Machine,
        "Secret" => Kind::Secret,
        other => {
            let place = format!("{file}:{first_line}: kind");
            let problem = format!("expected PhysicalHost, Beskar7Machine or Secret, got {other:?}");
            return Err(Failure::invalid(place, problem, HINT));
        }
    };
    let own_namespace = head.metadata.namespace.is_some();
    let (mut body, name) = match kind {
        Kind::Host => typed::<PhysicalHost>(file, first_line, document, PhysicalHost::validate)?,
        Kind::Machine => typed::<Beskar7Machine>(file, first_line, document, Beskar7Machine::validate)?,
        Kind::Secret => typed::<Secret>(file, first_line, document, Secret::validate)?,
    };
    let (namespace, name) = name;
    let namespace = if own_namespace { namespace } else { default_namespace.clone() };
    body["metadata"]["namespace"] = serde_json::Value::String(namespace.to_string());
    Ok(Manifest { kind, namespace, name, place: format!("{file}:{first_line}"), body })
}

type Typed = (serde_json::Value, (Name, Name));

fn typed<R: Resource>(
    file: &str,
    first_line: usize,
    document: &str,
    validate: fn(&R) -> Result<(), farrier_shared::resource::validate::ValidationError>,
) -> Result<Typed, Failure> {
    let secret = R::KIND == Secret::KIND;
    let object: R = serde_saphyr::from_str(document)
        .map_err(|e| named(invalid(file, first_line, &e, secret), field_at_fault::<R>(document)))?;
    validate(&object)
        .map_err(|e| Failure::invalid(format!("{file}:{first_line}: {}", e.field), e.problem, HINT))?;
    let place = (object.metadata().namespace.clone(), object.metadata().name.clone());
    // The document itself is sent, not the object: stringData is write-only and would be lost.
    let body = serde_saphyr::from_str(document).map_err(|e| invalid(file, first_line, &e, secret))?;
    Ok((body, place))
}

/// Path of the field that does not fit the kind, such as `spec.redfishConnection.address`. The YAML reader
/// knows the line of an error, not its field.
fn field_at_fault<R: Resource>(document: &str) -> Option<String> {
    let value: serde_json::Value = serde_saphyr::from_str(document).ok()?;
    let error = serde_path_to_error::deserialize::<_, R>(value).err()?;
    Some(error.path().to_string()).filter(|path| path != ".")
}

/// The failure with the field in its place.
fn named(failure: Failure, field: Option<String>) -> Failure {
    match (failure, field) {
        (Failure::Invalid { place, problem, hint }, Some(field)) => {
            Failure::Invalid { place: format!("{place}: {field}"), problem, hint }
        }
        (failure, _) => failure,
    }
}

/// A YAML error at its line in the file. The text of a Secret's error may quote the value, so it is withheld.
fn invalid(file: &str, first_line: usize, error: &serde_saphyr::Error, secret: bool) -> Failure {
    let at = error.location().map(|l| (usize::try_from(l.line()).unwrap_or(1), l.column()));
    let place = match at {
        Some((line, column)) => format!("{file}:{}:{column}", first_line + line.saturating_sub(1)),
        None => format!("{file}:{first_line}"),
    };
    let problem = if secret {
        "not a valid Secret here (the value is withheld); data holds base64, stringData plain text".to_owned()
    } else {
        first_sentence(&error.without_snippet().to_string())
    };
    Failure::invalid(place, problem, HINT)
}

/// The message without the position the library appends: ours counts from the top of the file.
fn first_sentence(text: &str) -> String {
    let line = text.lines().find(|l| !l.trim().is_empty()).unwrap_or_default();
    line.split(" at line ").next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_of_a_file_is_found_however_it_is_marked() {
        let secret = |name: &str| format!("{{kind: Secret, apiVersion: v1, metadata: {{name: {name}}}}}");
        let (a, b) = (secret("a"), secret("b"));
        let block = "kind: Secret\napiVersion: v1\nmetadata:\n  name: a\n";
        let table = [
            (format!("{a}\n---\n{b}\n"), vec![("f:1", "a"), ("f:3", "b")]),
            (format!("--- {a}\n--- {b}\n"), vec![("f:1", "a"), ("f:2", "b")]),
            (format!("---\t{a}\n--- # a comment\n{b}\n"), vec![("f:1", "a"), ("f:2", "b")]),
            (format!("{block}...\n---\n{b}"), vec![("f:1", "a"), ("f:7", "b")]),
            (format!("%YAML 1.2\n---\n{block}"), vec![("f:3", "a")]),
            (format!("\u{feff}# first\r\n{a}\r\n---\r\n---\r\n"), vec![("f:1", "a")]),
        ];
        for (text, expected) in table {
            let read = read("f", &text, &"default".parse().unwrap()).unwrap();
            let found: Vec<_> = read.iter().map(|m| (m.place.as_str(), m.name.as_str())).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn what_follows_a_marker_is_an_error_rather_than_left_out() {
        let text = "--- nothing known\n---\nkind: Secret\napiVersion: v1\nmetadata: {name: a}\n";
        assert!(read("f", text, &"default".parse().unwrap()).is_err());
    }
}
