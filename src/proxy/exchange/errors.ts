/**
 * All errors with which the data plane itself ends a request (docs/reference/errors.md). One table maps a code to the
 * HTTP status, the gRPC status, the reason in the access log and the fixed text for the client. Details of a failure
 * stay in the log.
 */
import { GwError } from "../../lib/errors.ts";

export const PROXY_ERRORS = {
  listener_not_found: { status: 404, grpc: 12, reason: "NotFound", text: "listener not found" },
  misdirected: { status: 421, grpc: 2, reason: "NotFound", text: "misdirected request" },
  route_not_found: { status: 404, grpc: 12, reason: "NotFound", text: "route not found" },
  match_costly: { status: 500, grpc: 2, reason: "Internal", text: "matching this request to a route takes too long" },
  policy_refused: { status: 500, grpc: 2, reason: "Internal", text: "this route is closed by an invalid policy" },
  route_invalid: { status: 500, grpc: 2, reason: "Internal", text: "this route is not configured correctly" },
  backend_unfit: { status: 500, grpc: 2, reason: "Internal", text: "invalid backend type" },
  bind_not_found: { status: 404, grpc: 12, reason: "NotFound", text: "bind not found" },
  backend_invalid: { status: 500, grpc: 14, reason: "Internal", text: "no valid backends" },
  jwt_missing: { status: 401, grpc: 16, reason: "JwtAuth", text: "authentication failure: no bearer token found" },
  jwt_invalid: {
    status: 401,
    grpc: 16,
    reason: "JwtAuth",
    text: "authentication failure: the token is invalid or malformed",
  },
  jwt_header_malformed: {
    status: 401,
    grpc: 16,
    reason: "JwtAuth",
    text: "authentication failure: the token header is malformed",
  },
  jwt_key_unnamed: {
    status: 401,
    grpc: 16,
    reason: "JwtAuth",
    text: "authentication failure: the token header does not specify a `kid`",
  },
  jwt_key_unknown: {
    status: 401,
    grpc: 16,
    reason: "JwtAuth",
    text: "authentication failure: token uses the unknown key",
  },
  basic_missing: {
    status: 401,
    grpc: 16,
    reason: "BasicAuth",
    text: "basic authentication failure: no credentials found",
  },
  basic_invalid: {
    status: 401,
    grpc: 16,
    reason: "BasicAuth",
    text: "basic authentication failure: invalid credentials",
  },
  basic_overloaded: {
    status: 503,
    grpc: 14,
    reason: "BasicAuth",
    text: "too many passwords are being checked",
  },
  api_key_missing: {
    status: 401,
    grpc: 16,
    reason: "APIKeyAuth",
    text: "api key authentication failure: no API Key found",
  },
  api_key_invalid: {
    status: 401,
    grpc: 16,
    reason: "APIKeyAuth",
    text: "api key authentication failure: invalid credentials",
  },
  csrf_rejected: { status: 403, grpc: 7, reason: "Authorization", text: "CSRF validation failed" },
  ext_auth_failed: { status: 403, grpc: 7, reason: "ExtAuth", text: "external authorization failed" },
  authorization_failed: { status: 403, grpc: 7, reason: "Authorization", text: "authorization failed" },
  ext_proc_failed: { status: 500, grpc: 2, reason: "ExtProc", text: "ext_proc failed" },
  rate_limit_failed: { status: 500, grpc: 2, reason: "RateLimit", text: "rate limit failed" },
  rate_limited: { status: 429, grpc: 14, reason: "RateLimit", text: "rate limit exceeded" },
  request_timeout: { status: 504, grpc: 14, reason: "Timeout", text: "request timeout" },
  backend_timeout: { status: 504, grpc: 14, reason: "Timeout", text: "upstream call timeout" },
  grpc_timeout: { status: 504, grpc: 4, reason: "Timeout", text: "deadline exceeded" },
  connect_timeout: { status: 504, grpc: 14, reason: "Timeout", text: "upstream call timeout" },
  endpoint_unavailable: { status: 503, grpc: 14, reason: "NoHealthyBackend", text: "no healthy backends" },
  picker_failed: { status: 503, grpc: 14, reason: "UpstreamFailure", text: "the endpoint picker failed" },
  upstream_unreachable: { status: 503, grpc: 14, reason: "UpstreamFailure", text: "upstream call failed" },
  destination_refused: { status: 503, grpc: 14, reason: "UpstreamFailure", text: "upstream call failed" },
  tunnel_unauthorized: { status: 503, grpc: 14, reason: "UpstreamFailure", text: "upstream call failed" },
  upstream_broken: { status: 503, grpc: 14, reason: "UpstreamFailure", text: "upstream call failed" },
  response_invalid: { status: 503, grpc: 14, reason: "UpstreamFailure", text: "upstream call failed" },
  llm_response_invalid: {
    status: 502,
    grpc: 14,
    reason: "UpstreamFailure",
    text: "failed to process LLM response: the provider's answer is not usable",
  },
  a2a_card_invalid: {
    status: 502,
    grpc: 14,
    reason: "UpstreamFailure",
    text: "a2a: agent card is not usable",
  },
  response_too_large: { status: 502, grpc: 14, reason: "UpstreamFailure", text: "response body too large" },
  method_not_allowed: { status: 405, grpc: 2, reason: "InvalidRequest", text: "method not allowed" },
  upgrade_failed: { status: 502, grpc: 14, reason: "UpstreamFailure", text: "request upgrade failed" },
  upgrade_unsupported: { status: 501, grpc: 2, reason: "InvalidRequest", text: "protocol upgrade not supported" },
  request_slow: { status: 408, grpc: 2, reason: "InvalidRequest", text: "request timeout" },
  headers_too_large: { status: 431, grpc: 2, reason: "InvalidRequest", text: "" },
  body_too_large: { status: 413, grpc: 2, reason: "InvalidRequest", text: "request body too large" },
  encoding_unsupported: { status: 415, grpc: 2, reason: "InvalidRequest", text: "unsupported content encoding" },
  request_invalid: { status: 400, grpc: 13, reason: "InvalidRequest", text: "invalid request" },
  llm_request_invalid: { status: 400, grpc: 13, reason: "InvalidRequest", text: "invalid LLM request" },
  llm_model_invalid: { status: 400, grpc: 13, reason: "InvalidRequest", text: "invalid model" },
  llm_model_missing: { status: 400, grpc: 13, reason: "InvalidRequest", text: "model not specified" },
  model_not_found: { status: 404, grpc: 12, reason: "NotFound", text: "model not found" },
  model_authorization_denied: { status: 403, grpc: 7, reason: "Authorization", text: "model not allowed" },
  virtual_model_no_matching_target: {
    status: 400,
    grpc: 13,
    reason: "InvalidRequest",
    text: "no target of the model matches",
  },
  virtual_model_target_not_found: { status: 404, grpc: 12, reason: "NotFound", text: "target of the model not found" },
  model_selection_failed: {
    status: 503,
    grpc: 14,
    reason: "UpstreamFailure",
    text: "the service that chooses the model failed",
  },
  virtual_model_not_resolved: { status: 404, grpc: 12, reason: "NotFound", text: "target of the model is virtual" },
  llm_thread_unsupported: {
    status: 400,
    grpc: 13,
    reason: "InvalidRequest",
    text: "failed to process LLM request: thread cannot be translated for this provider, which keeps no conversations",
  },
  llm_conversion_unsupported: { status: 400, grpc: 13, reason: "InvalidRequest", text: "unsupported conversion" },
  credential_unavailable: { status: 500, grpc: 2, reason: "Internal", text: "backend authentication failed" },
  loop_detected: { status: 508, grpc: 2, reason: "Internal", text: "loop detected" },
  llm_upgrade_unsupported: { status: 426, grpc: 2, reason: "InvalidRequest", text: "protocol upgrade not supported" },
  llm_format_unserved: {
    status: 501,
    grpc: 2,
    reason: "InvalidRequest",
    text: "requests of this kind are not served yet",
  },
  guard_failed: {
    status: 503,
    grpc: 14,
    reason: "Guardrail",
    text: "failed to process LLM request: prompt guard failed",
  },
  guard_mask_invalid: {
    status: 500,
    grpc: 2,
    reason: "Guardrail",
    text: "failed to process LLM request: prompt guard answered with an invalid mask",
  },
  issuer_unavailable: {
    status: 500,
    grpc: 2,
    reason: "UpstreamFailure",
    text: "the issuer of tokens cannot be reached",
  },
  expression_failed: { status: 500, grpc: 2, reason: "Internal", text: "expression failed" },
  internal: { status: 503, grpc: 14, reason: "Internal", text: "processing failed" },
} as const;

export type ProxyErrorCode = keyof typeof PROXY_ERRORS;

/**
 * Ends a request with the table's response. `text` may replace the fixed text only when it holds nothing from upstream.
 */
export class ProxyError extends GwError {
  readonly code: ProxyErrorCode;
  readonly text: string;
  readonly status: number;
  /** Error code of the upstream's RST_STREAM, passed on to an HTTP/2 client when its response breaks off. */
  readonly resetCode: number | undefined;
  /** Body of the response in place of the text, as JSON, for clients that read errors of OAuth. */
  readonly json: string | undefined;

  /**
   * @param options `status` is only for 407, which replaces 401 when the client uses us as a proxy (RFC 9110 §15.5.8)
   */
  constructor(
    code: ProxyErrorCode,
    options: { detail?: string; cause?: unknown; text?: string; status?: 407; resetCode?: number; json?: string } = {},
  ) {
    super(options.text ?? PROXY_ERRORS[code].text, options);
    this.code = code;
    this.resetCode = options.resetCode;
    this.json = options.json;
    this.text = options.text ?? PROXY_ERRORS[code].text;
    this.status = options.status ?? PROXY_ERRORS[code].status;
  }
}
