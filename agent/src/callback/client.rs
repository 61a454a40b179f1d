//! The calls.

use std::sync::Arc;
use std::time::Duration;

use farrier_shared::contract::callback::{
    Event, MAX_BOOTSTRAP_BODY, MAX_INSPECTION_BODY, ProvisionFailed, Provisioned, cut_reason,
};
use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::paths::Callback;
use farrier_shared::contract::{HostKey, InspectionReport};
use reqwest::dns::Resolve;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Certificate, Method, Response, redirect};
use tokio::time::Instant;
use zeroize::{Zeroize as _, Zeroizing};

use super::error::root_cause;
use super::retry::back_off;
use super::{CallbackError, Policy};

/// Most bytes of log sent.
const MAX_LOGS: usize = 1 << 20;

/// The machine's user-data; zeroized on drop.
pub type UserData = Zeroizing<Vec<u8>>;

/// Client of one controller for one run.
pub struct Client {
    http: reqwest::Client,
    base: String,
    controller: String,
    host: HostKey,
    bearer: HeaderValue,
    timeout: Duration,
    policy: Policy,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({} for {})", self.controller, self.host)
    }
}

/// One call: what to send where.
struct Call<'a> {
    what: Callback,
    method: Method,
    content: &'static str,
    body: &'a [u8],
}

/// What a single attempt came to.
enum Attempt {
    Done(Response),
    /// Another attempt may do better.
    Later(String),
    Never(CallbackError),
}

impl Client {
    /// A client for the controller of these parameters, which finds hosts by this resolver.
    ///
    /// # Errors
    /// When the CA bundle holds no certificate, or TLS cannot be set up.
    pub fn new(
        params: &BootParams,
        resolver: Arc<dyn Resolve>,
        policy: Policy,
    ) -> Result<Self, CallbackError> {
        let setup = |cause: String| CallbackError::Setup { cause };
        let roots = Certificate::from_pem_bundle(&params.ca_pem)
            .map_err(|e| CallbackError::Ca { cause: root_cause(&e) })?;
        if roots.is_empty() {
            return Err(CallbackError::Ca { cause: "no certificate in it".to_owned() });
        }
        let http = reqwest::Client::builder()
            .tls_certs_only(roots)
            .dns_resolver(resolver)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(policy.connect)
            .timeout(policy.call)
            .build()
            .map_err(|e| setup(root_cause(&e)))?;
        let mut text = format!("Bearer {}", params.token.expose());
        let bearer = HeaderValue::from_str(&text);
        text.zeroize();
        let mut bearer = bearer.map_err(|_| setup("the token is no header value".to_owned()))?;
        bearer.set_sensitive(true);
        Ok(Self {
            http,
            base: params.api.as_str().trim_end_matches('/').to_owned(),
            controller: params.api.authority(),
            host: params.host.clone(),
            bearer,
            timeout: params.timeout,
            policy,
        })
    }

    /// Sends the report, trying for as long as [`Policy::patience`] says.
    ///
    /// # Errors
    /// When it did not get through.
    pub async fn report(&self, report: &InspectionReport) -> Result<(), CallbackError> {
        let mut body = self.json(Callback::Inspection, report)?;
        if body.len() > MAX_INSPECTION_BODY {
            // Hundreds of disks: what the contract has no field for is what can be spared.
            tracing::warn!(bytes = body.len(), "the report is too large and goes without its details");
            body = self.json(Callback::Inspection, &InspectionReport { farrier: None, ..report.clone() })?;
        }
        let call = post(Callback::Inspection, "application/json", &body);
        self.insist(self.policy.patience, &call).await
    }

    /// Polls for the user-data until it is there or the command line's timeout has passed.
    ///
    /// # Errors
    /// At once on a refusal, a bad certificate or more than 1 MiB; [`CallbackError::NoUserData`] in the end.
    pub async fn bootstrap(&self) -> Result<UserData, CallbackError> {
        let call = Call { what: Callback::Bootstrap, method: Method::GET, content: "", body: &[] };
        let start = Instant::now();
        loop {
            let cause = match self.attempt(&call).await {
                Attempt::Done(response) => match self.read_user_data(response).await? {
                    Ok(data) => return Ok(data),
                    Err(cause) => cause,
                },
                // The controller has no user-data for this machine yet.
                Attempt::Never(CallbackError::Refused { status: 404, .. }) => "HTTP 404".to_owned(),
                Attempt::Never(error) => return Err(error),
                Attempt::Later(cause) => cause,
            };
            let waited = start.elapsed();
            if waited + self.policy.poll > self.timeout {
                return Err(CallbackError::NoUserData { controller: self.controller.clone(), waited, cause });
            }
            tokio::time::sleep(self.policy.poll).await;
        }
    }

    /// Reads user-data into a buffer that never moves, so that no copy stays behind unzeroized by us.
    async fn read_user_data(
        &self,
        mut response: Response,
    ) -> Result<Result<UserData, String>, CallbackError> {
        let too_large =
            || CallbackError::TooLarge { controller: self.controller.clone(), limit: MAX_BOOTSTRAP_BODY };
        let mut data = Zeroizing::new(Vec::with_capacity(MAX_BOOTSTRAP_BODY));
        loop {
            match response.chunk().await {
                Ok(Some(piece)) => {
                    if data.len() + piece.len() > MAX_BOOTSTRAP_BODY {
                        return Err(too_large());
                    }
                    data.extend_from_slice(&piece);
                    // The piece is ours alone once hyper has handed it out, unless it shares a buffer still in use.
                    if let Ok(mut own) = piece.try_into_mut() {
                        own.zeroize();
                    }
                }
                Ok(None) => return Ok(Ok(data)),
                Err(error) => return Ok(Err(root_cause(&error))),
            }
        }
    }

    /// Sends one event, in one attempt: the next one follows soon anyway. `false` when the controller knows no
    /// events; spare it further ones then.
    ///
    /// # Errors
    /// When it did not get through.
    pub async fn event(&self, event: &Event) -> Result<bool, CallbackError> {
        let body = self.json(Callback::Events, event)?;
        let call = post(Callback::Events, "application/json", &body);
        match self.attempt(&call).await {
            Attempt::Done(_) => Ok(true),
            Attempt::Never(error) => known(Err(error)),
            Attempt::Later(cause) => Err(self.exhausted(call.what, 1, cause)),
        }
    }

    /// Reports success, trying for as long as [`Policy::installed_patience`] says.
    ///
    /// # Errors
    /// When it did not get through.
    pub async fn provisioned(&self) -> Result<(), CallbackError> {
        let body = self.json(Callback::Provisioned, &Provisioned::default())?;
        let call = post(Callback::Provisioned, "application/json", &body);
        self.insist(self.policy.installed_patience, &call).await
    }

    /// Reports failure, in at most 256 bytes, trying for as long as [`Policy::patience`] says; `false` when the
    /// controller does not know the call.
    ///
    /// # Errors
    /// When it did not get through.
    pub async fn provision_failed(&self, reason: &str) -> Result<bool, CallbackError> {
        let reason = cut_reason(reason).to_owned();
        let body = self.json(Callback::ProvisionFailed, &ProvisionFailed { reason })?;
        let call = post(Callback::ProvisionFailed, "application/json", &body);
        known(self.insist(self.policy.patience, &call).await)
    }

    /// Sends the end of the log, at most 1 MiB of it; `false` when the controller does not know the call.
    ///
    /// # Errors
    /// When it did not get through.
    pub async fn logs(&self, text: &[u8]) -> Result<bool, CallbackError> {
        let tail = &text[text.len().saturating_sub(MAX_LOGS)..];
        let call = post(Callback::Logs, "text/plain; charset=utf-8", tail);
        known(self.retry(&call, |attempts, _| attempts >= self.policy.log_attempts).await)
    }

    fn json<T: serde::Serialize>(&self, what: Callback, body: &T) -> Result<Vec<u8>, CallbackError> {
        let setup = |e| CallbackError::Setup { cause: format!("{} cannot be written: {e}", what.segment()) };
        serde_json::to_vec(body).map_err(setup)
    }

    /// Tries until it works, cannot work, or this much time has passed.
    async fn insist(&self, patience: Duration, call: &Call<'_>) -> Result<(), CallbackError> {
        let deadline = Instant::now() + patience;
        self.retry(call, |_, wait| Instant::now() + wait > deadline).await
    }

    /// Tries until it works, cannot work, or `enough` says so of the attempts made and the next wait.
    async fn retry(
        &self,
        call: &Call<'_>,
        enough: impl Fn(u32, Duration) -> bool,
    ) -> Result<(), CallbackError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let cause = match self.attempt(call).await {
                Attempt::Done(_) => return Ok(()),
                Attempt::Never(error) => return Err(error),
                Attempt::Later(cause) => cause,
            };
            let wait = back_off(attempts, self.policy.first_wait, self.policy.longest_wait);
            if enough(attempts, wait) {
                return Err(self.exhausted(call.what, attempts, cause));
            }
            tracing::warn!(call = call.what.segment(), attempts, cause, "callback failed, will try again");
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&self, call: &Call<'_>) -> Attempt {
        let url = format!("{}{}", self.base, call.what.path(&self.host));
        let mut request =
            self.http.request(call.method.clone(), url).header(AUTHORIZATION, self.bearer.clone());
        if call.method == Method::POST {
            request = request.header(CONTENT_TYPE, call.content).body(call.body.to_vec());
        }
        let (call, controller) = (call.what.segment(), self.controller.clone());
        match request.send().await {
            Ok(response) if response.status().is_success() => Attempt::Done(response),
            Ok(response) => {
                let status = response.status();
                if matches!(status.as_u16(), 408 | 429) || status.is_server_error() {
                    Attempt::Later(format!("HTTP {}", status.as_u16()))
                } else {
                    Attempt::Never(CallbackError::Refused { call, controller, status: status.as_u16() })
                }
            }
            Err(error) => match certificate_refusal(&error) {
                Some(cause) => Attempt::Never(CallbackError::Tls { call, controller, cause }),
                None => Attempt::Later(root_cause(&error)),
            },
        }
    }

    fn exhausted(&self, what: Callback, attempts: u32, cause: String) -> CallbackError {
        CallbackError::Exhausted {
            call: what.segment(),
            controller: self.controller.clone(),
            attempts,
            cause,
        }
    }
}

fn post<'a>(what: Callback, content: &'static str, body: &'a [u8]) -> Call<'a> {
    Call { what, method: Method::POST, content, body }
}

/// `false` for a 404: a controller without Farrier's own calls, or of an older contract.
fn known(result: Result<(), CallbackError>) -> Result<bool, CallbackError> {
    match result {
        Ok(()) => Ok(true),
        Err(CallbackError::Refused { status: 404, .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What the verifier says, when it was the certificate that failed.
fn certificate_refusal(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
        return Some(error.to_string());
    }
    // An I/O error passes over what it wraps when it is asked for its source.
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    wrapped
        .and_then(|inner| certificate_refusal(inner))
        .or_else(|| error.source().and_then(certificate_refusal))
}
