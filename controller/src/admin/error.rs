//! Errors of the admin API: which field, what is wrong, what to do.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use farrier_shared::resource::validate::ValidationError;
use serde::{Deserialize, Serialize};

use crate::store::StoreError;

/// What is wrong, as the client sees it. Never holds a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Path of the field at fault, empty when it is the request as a whole.
    #[serde(default)]
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do next.
    #[serde(default)]
    pub hint: String,
}

/// The body of every error.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What is wrong.
    pub error: Problem,
}

/// An answer that is an error.
#[derive(Debug)]
pub struct ApiError {
    /// HTTP status.
    pub status: StatusCode,
    /// What is wrong.
    pub problem: Problem,
}

impl ApiError {
    /// An error about `field`.
    pub fn new(status: StatusCode, field: &str, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            status,
            problem: Problem { field: field.to_owned(), problem: problem.into(), hint: hint.into() },
        }
    }

    /// 404.
    pub fn not_found(problem: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "", problem, "list what there is with `farrier get`")
    }

    /// 422 about a field.
    pub fn invalid(field: &str, problem: impl Into<String>, hint: &str) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, field, problem, hint)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(ErrorBody { error: self.problem })).into_response()
    }
}

impl From<ValidationError> for ApiError {
    fn from(error: ValidationError) -> Self {
        Self::invalid(&error.field, error.problem, "correct the field; nothing was stored")
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { .. } => Self::not_found(error.to_string()),
            StoreError::AlreadyExists { .. } => Self::new(
                StatusCode::CONFLICT,
                "metadata.name",
                error.to_string(),
                "choose another name, or change the existing object with `farrier apply`",
            ),
            StoreError::Conflict { .. } => {
                Self::new(StatusCode::CONFLICT, "", error.to_string(), "try again")
            }
            other => {
                tracing::error!(error = %other, "admin request failed");
                let hint = "see the controller's log";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", other.to_string(), hint)
            }
        }
    }
}
