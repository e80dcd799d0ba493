/**
 * The values that counter-proofs (prove.ts) give to fields in place of the ones in the test. Without a second value, a
 * proof that passes with any value would only show that the field exists. `make verify` refuses a proven number,
 * duration, unit or enum without one.
 */
import type { ChangeValue } from "./alter-field.ts";

const swap =
  (a: unknown, b: unknown): ChangeValue =>
  (value) =>
    value === a ? b : a;
const to =
  (second: unknown): ChangeValue =>
  () =>
    second;

/** Longer than any test waits. */
const HOUR = to("1h");
/** A port on which nothing listens. */
const CLOSED_PORT = to(1);

/** Second values by the end of a field's path; the longest matching end counts. */
const SECOND_VALUES: Readonly<Record<string, ChangeValue>> = {
  // References
  port: CLOSED_PORT,
  "targetRefs[].port": swap(8080, 8081),
  "targetSelectors[].port": swap(8080, 8081),
  "backendRef.group": swap("", "gwproxy.dev"),
  "backendRef.kind": swap("Service", "GwBackend"),
  "caCertificateRefs[].kind": swap("ConfigMap", "Secret"),
  // Modes
  endpointPreference: swap("AltOnly", "RuntimeOnly"),
  cacheSystem: swap(false, true),
  cacheMessages: swap(false, true),
  cacheTools: swap(true, false),
  minTokens: to(14),
  cacheMessageOffset: to(2),
  failureMode: swap("FailOpen", "FailClosed"),
  "apiKeyAuthentication.mode": swap("Strict", "Optional"),
  "basicAuthentication.mode": swap("Strict", "Optional"),
  "jwtAuthentication.mode": swap("Strict", "Optional"),
  "mcp.authentication.mode": swap("Strict", "Optional"),
  "jwtAuthentication.preserveToken": swap(true, false),
  "authorization.action": swap("Allow", "Deny"),
  "networkAuthorization.action": swap("Allow", "Deny"),
  "connect.mode": (mode) => (mode === "Deny" ? "Route" : "Deny"),
  "hostRewrite.mode": swap("Auto", "None"),
  "proxyProtocol.mode": swap("Strict", "Optional"),
  "proxyProtocol.version": swap("V1", "V2"),
  "strategy.inheritance": swap("Default", "Override"),
  prefixMode: (mode) => (mode === "Always" ? "Never" : "Always"),
  "static.protocol": swap("SSE", "StreamableHTTP"),
  sessionRouting: swap("Stateful", "Stateless"),
  "traffic.phase": swap("PreRouting", "PostRouting"),
  "tunnel.mode": swap("Auto", "Connect"),
  "jwtSign.alg": to("RS512"),
  "jwtSign.ttl": to("7s"),
  "oauthTokenExchange.cache.inMemory.defaultTtl": to("300s"),
  "oauthTokenExchange.cache.inMemory.maxEntries": to(5),
  "crossAppAccess.cache.inMemory.maxEntries": to(5),
  "crossAppAccess.cache.inMemory.defaultTtl": to("300s"),
  "clientAuth.method": swap("ClientSecretPost", "ClientSecretBasic"),
  "clientAuth.privateKeyJwt.alg": to("RS256"),
  "clientAuth.privateKeyJwt.certificateHeader": swap("x5c", "x5t#S256"),
  "oauthTokenExchange.grantType": swap("JwtBearer", "TokenExchange"),
  requestedTokenType: swap("Jwt", "IdToken"),
  "cloudC.type": swap("IdToken", "AccessToken"),
  // Prompt guards
  "promptGuard.streaming": swap("Enabled", "Disabled"),
  "regex.action": swap("Mask", "Reject"),
  "webhook.action": swap("Reject", "Audit"),
  "moderation.action": swap("Reject", "Audit"),
  "guardrailsA.action": swap("Reject", "Audit"),
  "guardrailsB.action": swap("Reject", "Audit"),
  "regex.builtins[]": swap("Ssn", "Email"),
  "request[].scope[]": swap("ToolOutput", "ToolInput"),
  "response[].scope[]": swap("ToolOutput", "ToolInput"),
  "response.statusCode": to(418),
  "forwardHeaderMatches[].type": swap("Exact", "RegularExpression"),
  // Protocols
  "formats[].type": swap("Completions", "Messages"),
  "llmd.resourceType": swap("ResA", "ResB"),
  "http.http1HeaderCase": swap("Lowercase", "Preserve"),
  "http.version": swap("HTTP1", "HTTP2"),
  "otlp.protocol": swap("GRPC", "HTTP"),
  "tracing.protocol": swap("GRPC", "HTTP"),
  "processingOptions.allowModeOverride": swap(true, false),
  "processingOptions.requestBodyMode": swap("None", "FullDuplexStreamed"),
  "processingOptions.requestHeaderMode": swap("Send", "Skip"),
  "processingOptions.requestTrailerMode": swap("Send", "Skip"),
  "processingOptions.responseBodyMode": swap("None", "FullDuplexStreamed"),
  "processingOptions.responseHeaderMode": swap("Send", "Skip"),
  "processingOptions.responseTrailerMode": swap("Send", "Skip"),
  // TLS
  "tls.certificateSource": swap("Inline", "SPIFFE"),
  "tls.cipherSuites[]": swap("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
  "tls.handshakeTimeout": HOUR,
  "tls.insecureSkipVerify": swap("All", "Hostname"),
  "tls.keyExchangeGroups[]": swap("P-256", "P-384"),
  "tls.maxProtocolVersion": swap("1.2", "1.3"),
  "tls.minProtocolVersion": swap("1.2", "1.3"),
  // Time
  "http.http1IdleTimeout": HOUR,
  "http.http2KeepaliveInterval": HOUR,
  "http.http2KeepaliveTimeout": HOUR,
  "http.maxConnectionDuration": HOUR,
  "http.requestTimeout": HOUR,
  "keepalive.interval": to("13s"),
  "keepalive.retries": to(5),
  "keepalive.time": to("11s"),
  "jwks.cacheDuration": HOUR,
  "remote.cacheDuration": HOUR,
  "retry.backoff": to("1ms"),
  "tcp.connectTimeout": HOUR,
  "timeouts.request": to("3s"),
  "cors.maxAge": to(7),
  "eviction.duration": HOUR,
  // Numbers
  "cache.maxEntries": to(1000),
  "directResponse.status": to(299),
  "policy.status": to(299),
  "eviction.consecutiveFailures": to(50),
  "eviction.healthThreshold": to(0),
  "eviction.restoreHealth": to(1),
  "forwardBody.maxSize": to(1),
  "http.http1MaxHeaders": to(100),
  "http.http2ConnectionWindowSize": to(70_000),
  "http.http2FrameSize": to(17_000),
  "http.http2MaxHeaderSize": to(70_000),
  "http.http2WindowSize": to(70_000),
  "http.maxBufferSize": to(1),
  "request.maxBytes": to(1),
  "response.maxBytes": to(1),
  "retry.attempts": to(5),
  "retry.codes[]": to(499),
  // Budgets
  "descriptors[].unit": swap("Requests", "Tokens"),
  "local[].burst": to(50),
  "local[].requests": to(50),
  "local[].tokens": to(5000),
  "local[].unit": (unit) => (unit === "Hours" ? "Minutes" : "Hours"),
  // Names that have a few values
  "cors.allowCredentials": swap(true, false),
  "cors.allowMethods[]": swap("DELETE", "PATCH"),
  "validation.requiredClaims[]": to("aud"),
  // Parameters of a deployment
  "workload.kind": swap("Deployment", "DaemonSet"),
  "logging.format": swap("json", "text"),
  "logging.level": to("warn"),
  "image.pullPolicy": swap("Always", "Never"),
  "env[].name": to("OTHER"),
  "fieldRef.fieldPath": to("status.podIP"),
  "resourceFieldRef.divisor": to("1Gi"),
  "resourceFieldRef.resource": to("limits.cpu"),
  "configMapKeyRef.key": to("other"),
  "configMapKeyRef.name": to("other"),
  "configMapKeyRef.optional": swap(true, false),
  "secretKeyRef.key": to("other"),
  "secretKeyRef.name": to("other"),
  "secretKeyRef.optional": swap(true, false),
  "claims[].name": to("other"),
  "resources.limits": to({ cpu: "7" }),
  "resources.requests": to({ cpu: "7" }),
  "shutdown.max": to(100),
  "shutdown.min": to(2),
  "mesh.enabled": swap(true, false),
  "spiffe.enabled": swap(true, false),
  "hostPath.path": to("/other"),
  // Required fields can only be changed
  "authorization.policy.matchExpressions[]": to("false"),
  "networkAuthorization.policy.matchExpressions[]": to("false"),
  "processors[].methods": to({ "*": "Off" }),
  "cache.key[]": to('"same"'),
  "cache.ttl": to("1ms"),
  "delay.duration": to("1ms"),
  "targetSelectors[].matchLabels": to({ other: "label" }),
  "append[].content": to("other"),
  "append[].role": to("assistant"),
  "prepend[].content": to("other"),
  "prepend[].role": to("assistant"),
  "defaults[].field": to("other"),
  "defaults[].value": to("other"),
  "overrides[].field": to("other"),
  "overrides[].value": to("other"),
  "finalTransformations[].expression": to('"other"'),
  "finalTransformations[].field": to("other"),
  "transformations[].expression": to('"other"'),
  baseURL: to("http://other.test:8000"),
  "custom.backendRef.name": swap("one", "two"),
  "parentRefs[].group": to("other.example"),
  "parentRefs[].kind": swap("HTTPRoute", "Gateway"),
  "parentRefs[].name": to("other"),
  "parentRefs[].port": swap(8080, 8081),
  provider: swap("custom", "llma"),
  visibility: swap("Public", "Internal"),
  "targets[].modelRef.name": to("nowhere"),
  "targets[].priority": swap(0, 1),
  "callout.transformation": to({ model: '"other"' }),
  "targets[].weight": to(1),
  "transformations[].field": to("other"),
};

/** @returns undefined when the field has no second value */
export function findSecondValue(field: string): ChangeValue | undefined {
  const names = field.slice(field.indexOf(" ") + 1).split(".");
  for (let start = 1; start < names.length; start++) {
    const value = SECOND_VALUES[names.slice(start).join(".")];
    if (value !== undefined) return value;
  }
  return undefined;
}
