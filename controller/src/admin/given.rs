//! Objects as clients send them: read strictly, with the field at fault in each error.

use farrier_shared::contract::Name;
use farrier_shared::resource::metadata::ObjectMeta;
use farrier_shared::resource::{Resource, Secret};

use super::error::ApiError;

/// Reads an object; the error names the field. A Secret's values are never repeated.
pub(super) fn parse<R: Resource>(body: &[u8]) -> Result<R, ApiError> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let object = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = Some(error.path().to_string()).filter(|p| p != ".").unwrap_or_default();
        let inner = error.into_inner();
        let said = inner.to_string();
        // Whatever is not plainly about something else may quote a value.
        let about_data = R::KIND == Secret::KIND
            && !["apiVersion", "kind", "metadata"].iter().any(|f| field.starts_with(f));
        let problem = if about_data {
            "the value is not what is expected (withheld); data holds base64, stringData plain text"
                .to_owned()
        } else {
            // What follows is a position in JSON the operator never saw.
            said.split(" at line ").next().unwrap_or_default().to_owned()
        };
        ApiError::invalid(&field, problem, "correct the field; nothing was stored")
    })?;
    // Half of what was sent must not pass for the whole.
    reader.end().map_err(|_| {
        ApiError::invalid("", "something follows the object", "send one JSON object; nothing was stored")
    })?;
    Ok(object)
}

/// Checks that labels and the names of annotations can be shown on a terminal. Values of annotations are free.
pub(super) fn printable(metadata: &ObjectMeta) -> Result<(), ApiError> {
    let shown = |text: &String| !text.chars().any(char::is_control);
    let named = |key: &String| !key.is_empty() && shown(key);
    let ObjectMeta { labels, annotations, .. } = metadata;
    let refused = if !labels.iter().all(|(key, value)| named(key) && shown(value)) {
        "metadata.labels"
    } else if !annotations.keys().all(named) {
        "metadata.annotations"
    } else {
        return Ok(());
    };
    let hint = "remove it; nothing was stored";
    Err(ApiError::invalid(refused, "holds an empty name or a control character", hint))
}

pub(super) fn same_place<R: Resource>(
    given: &R,
    namespace: &Name,
    name: Option<&Name>,
) -> Result<(), ApiError> {
    let metadata = given.metadata();
    let differs = |field: &str, found: &Name, expected: &Name| {
        let problem = format!("{found} in the object, {expected} in the path");
        ApiError::invalid(field, problem, "make them the same")
    };
    if metadata.namespace != *namespace {
        return Err(differs("metadata.namespace", &metadata.namespace, namespace));
    }
    match name.filter(|name| **name != metadata.name) {
        Some(name) => Err(differs("metadata.name", &metadata.name, name)),
        None => Ok(()),
    }
}
