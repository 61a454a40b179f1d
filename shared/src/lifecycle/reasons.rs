//! Condition kinds and reasons, spelled as the contract spells them.

/// Host condition: the BMC answers.
pub const REDFISH_CONNECTION_READY: &str = "RedfishConnectionReady";
/// Host condition: nobody has claimed it.
pub const HOST_AVAILABLE: &str = "HostAvailable";
/// Host condition: the report of the present run is in.
pub const HOST_INSPECTED: &str = "HostInspected";

/// The BMC answered.
pub const REDFISH_CONNECTED: &str = "RedfishConnected";
/// The BMC does not answer at the network level.
pub const BMC_UNREACHABLE: &str = "BMCUnreachable";
/// The credentials may not go to this address.
pub const CREDENTIALS_NOT_AUTHORIZED: &str = "CredentialsNotAuthorized";
/// The credentials Secret or a key of it is missing.
pub const MISSING_CREDENTIALS: &str = "MissingCredentials";
/// Verification is both skipped and given a CA.
pub const INSECURE_CA_BUNDLE_CONFLICT: &str = "InsecureCABundleConflict";
/// The BMC's CA cannot be read.
pub const CA_BUNDLE_FETCH_FAILED: &str = "CABundleFetchFailed";
/// Connecting failed for a reason that does not pass by itself.
pub const REDFISH_CONNECTION_FAILED: &str = "RedfishConnectionFailed";
/// The BMC answered with something unusable.
pub const REDFISH_QUERY_FAILED: &str = "RedfishQueryFailed";
/// A machine has claimed the host.
pub const HOST_CLAIMED: &str = "HostClaimed";
/// The machine has let go of the host.
pub const HOST_RELEASED: &str = "HostReleased";

/// Machine condition: the operating system is installed.
pub const INFRASTRUCTURE_READY: &str = "InfrastructureReady";
/// Machine condition: the machine has a host.
pub const PHYSICAL_HOST_ASSOCIATED: &str = "PhysicalHostAssociated";
/// Machine condition: the user-data is there.
pub const BOOTSTRAP_DATA_READY: &str = "BootstrapDataReady";
/// Machine condition: the worst of the others.
pub const READY: &str = "Ready";
/// Machine condition of Farrier's own: a disk that fits the requirement by sum is too small by itself.
pub const DISK_SIZE_WARNING: &str = "DiskSizeWarning";

/// The installation is done.
pub const PROVISIONED: &str = "Provisioned";
/// The host is not there yet.
pub const PHYSICAL_HOST_NOT_READY: &str = "PhysicalHostNotReady";
/// The operator has paused the host; Farrier's own.
pub const PHYSICAL_HOST_PAUSED: &str = "PhysicalHostPaused";
/// The host's BMC is away and may come back.
pub const WAITING_FOR_BMC: &str = "WaitingForBMC";
/// A moved host has not found this machine yet.
pub const WAITING_FOR_HOST_ADOPTION: &str = "WaitingForHostAdoption";
/// The checksum file has not told the digest yet.
pub const WAITING_FOR_TARGET_IMAGE_DIGEST: &str = "WaitingForTargetImageDigest";
/// The host's credentials record belongs to another host.
pub const BOOTSTRAP_CREDENTIALS_CONFLICT: &str = "BootstrapCredentialsConflict";
/// No host is free.
pub const WAITING_FOR_PHYSICAL_HOST: &str = "WaitingForPhysicalHost";
/// Hosts are free, but none that is wanted.
pub const NO_MATCHING_PHYSICAL_HOST: &str = "NoMatchingPhysicalHost";
/// The search for a host cannot be carried out.
pub const PHYSICAL_HOST_ASSOCIATION_FAILED: &str = "PhysicalHostAssociationFailed";
/// Nobody has named the user-data yet.
pub const WAITING_FOR_BOOTSTRAP_DATA: &str = "WaitingForBootstrapData";
/// The disk is large enough by itself.
pub const DISK_LARGE_ENOUGH: &str = "DiskLargeEnough";
/// No single disk, or not the pinned one, is as large as required.
pub const DISK_TOO_SMALL: &str = "DiskTooSmall";

/// Terminal: no report in time.
pub const INSPECTION_TIMED_OUT: &str = "InspectionTimedOut";
/// Terminal: inspection failed.
pub const INSPECTION_FAILED: &str = "InspectionFailed";
/// Terminal: no installation in time.
pub const DEPLOYMENT_TIMED_OUT: &str = "DeploymentTimedOut";
/// Terminal: the agent reported failure.
pub const DEPLOYMENT_FAILED: &str = "DeploymentFailed";
/// Terminal: too little hardware.
pub const HARDWARE_REQUIREMENTS_NOT_MET: &str = "HardwareRequirementsNotMet";
/// Terminal: the selector cannot be understood.
pub const INVALID_HOST_SELECTOR: &str = "InvalidHostSelector";
/// Terminal: the named user-data does not exist.
pub const BOOTSTRAP_DATA_UNAVAILABLE: &str = "BootstrapDataUnavailable";
/// Terminal: the host failed.
pub const PHYSICAL_HOST_ERROR: &str = "PhysicalHostError";
