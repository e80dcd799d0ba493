/**
 * Lists every condition type and reason that this program writes: names of the Gateway API where it has one, gwproxy's
 * own elsewhere. The translator and the status computations use it.
 */
export const Condition = {
  Accepted: "Accepted",
  Programmed: "Programmed",
  ResolvedRefs: "ResolvedRefs",
  Conflicted: "Conflicted",
  Attached: "Attached",
  Overridden: "Overridden",
  StatusSummarized: "StatusSummarized",
  InsecureFrontendValidationMode: "InsecureFrontendValidationMode",
} as const;

export const Reason = {
  Accepted: "Accepted",
  Programmed: "Programmed",
  ResolvedRefs: "ResolvedRefs",
  Invalid: "Invalid",
  ListenersNotValid: "ListenersNotValid",
  InvalidParameters: "InvalidParameters",
  UnsupportedAddress: "UnsupportedAddress",
  AddressNotUsable: "AddressNotUsable",
  AddressNotAssigned: "AddressNotAssigned",
  DeploymentFailed: "DeploymentFailed",
  UnsupportedProtocol: "UnsupportedProtocol",
  HostnameConflict: "HostnameConflict",
  ProtocolConflict: "ProtocolConflict",
  BindModeConflict: "BindModeConflict",
  NoConflicts: "NoConflicts",
  InvalidRouteKinds: "InvalidRouteKinds",
  InvalidCertificateRef: "InvalidCertificateRef",
  InvalidClientCertificateRef: "InvalidClientCertificateRef",
  ConfigurationChanged: "ConfigurationChanged",
  InvalidCACertificateRef: "InvalidCACertificateRef",
  InvalidCACertificateKind: "InvalidCACertificateKind",
  NotAllowed: "NotAllowed",
  NoMatchingParent: "NoMatchingParent",
  NotAllowedByListeners: "NotAllowedByListeners",
  NoMatchingListenerHostname: "NoMatchingListenerHostname",
  RefNotPermitted: "RefNotPermitted",
  BackendNotFound: "BackendNotFound",
  NoValidCACertificate: "NoValidCACertificate",
  Conflicted: "Conflicted",
  InvalidKind: "InvalidKind",
  UnsupportedValue: "UnsupportedValue",
  IncompatibleFilters: "IncompatibleFilters",
  InvalidMatch: "InvalidMatch",
  TranslationError: "TranslationError",
  Valid: "Valid",
  PartiallyValid: "PartiallyValid",
  Attached: "Attached",
  Pending: "Pending",
  TargetNotManaged: "TargetNotManaged",
  StatusSummary: "StatusSummary",
} as const;

export type Reason = (typeof Reason)[keyof typeof Reason];
