/** Every condition type and reason that this program writes: names of the Gateway API where it has one, ours elsewhere. */
export const Condition = {
  Accepted: "Accepted",
  Programmed: "Programmed",
  ResolvedRefs: "ResolvedRefs",
  Conflicted: "Conflicted",
  Attached: "Attached",
  Overridden: "Overridden",
  StatusSummarized: "StatusSummarized",
} as const;

export const Reason = {
  Accepted: "Accepted",
  Programmed: "Programmed",
  ResolvedRefs: "ResolvedRefs",
  Invalid: "Invalid",
  ListenersNotValid: "ListenersNotValid",
  UnsupportedProtocol: "UnsupportedProtocol",
  HostnameConflict: "HostnameConflict",
  ProtocolConflict: "ProtocolConflict",
  NoConflicts: "NoConflicts",
  InvalidRouteKinds: "InvalidRouteKinds",
  InvalidCertificateRef: "InvalidCertificateRef",
  InvalidCACertificateRef: "InvalidCACertificateRef",
  InvalidCACertificateKind: "InvalidCACertificateKind",
  NoMatchingParent: "NoMatchingParent",
  NotAllowedByListeners: "NotAllowedByListeners",
  NoMatchingListenerHostname: "NoMatchingListenerHostname",
  RefNotPermitted: "RefNotPermitted",
  BackendNotFound: "BackendNotFound",
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
