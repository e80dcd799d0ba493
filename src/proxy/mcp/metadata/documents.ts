/**
 * Prints the OAuth metadata that clients read: that of the protected resource (RFC 9728 §2), and that of its
 * authorization server (RFC 8414 §2) as the gateway adapts it to what MCP clients can do. `app.ts` serves it.
 */
import { McpIssuerKind, type McpResource } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../../exchange/errors.ts";
import { REGISTRATION_ENDPOINT, TOKEN_ENDPOINT } from "./paths.ts";

/** Members of a JSON object. */
export type Members = Readonly<Record<string, unknown>>;

/** A document as it was fetched. */
export interface IssuerMetadata {
  readonly text: string;
  readonly members: Members;
}

/** The URLs of a request, as the client knows them. */
export interface MetadataUrls {
  /** The protected resource, with its query. */
  readonly resource: string;
  /** The gateway as authorization server of that resource: an issuer has no query (RFC 8414 §2). */
  readonly issuer: string;
  /** The document that was asked for. */
  readonly document: string;
}

/** A fixed text that clients of the peer expect; RFC 9728 does not know it. */
const PROTOCOL_VERSION = "2025-06-18";

/** @param metadata members that an operator adds; they may replace the others */
export function printResource({ kind, issuer }: McpResource, urls: MetadataUrls, metadata: Members): string {
  return JSON.stringify({
    resource: urls.resource,
    authorization_servers: [kind === McpIssuerKind.UNSPECIFIED ? issuer : urls.issuer],
    mcp_protocol_version: PROTOCOL_VERSION,
    resource_type: "mcp-server",
    ...metadata,
  });
}

/** @throws ProxyError issuer_unavailable when a member is missing that the adapted document needs */
export function printServer(spec: McpResource, urls: MetadataUrls, { text, members }: IssuerMetadata): string {
  const changes = { ...adapt(spec, urls, members), ...addTokenEndpoint(spec, urls) };
  return Object.keys(changes).length === 0 ? text : JSON.stringify({ ...members, ...changes });
}

function adapt({ kind, audiences: [audience] }: McpResource, urls: MetadataUrls, members: Members): Members {
  // The product names itself in its answers to clients, and not the gateway: a client that was promised the name of the
  // issuer would refuse them (RFC 9207 §2.4).
  const issuer = { issuer: urls.issuer, authorization_response_iss_parameter_supported: undefined };
  switch (kind) {
    case McpIssuerKind.AUTH0: {
      const { authorization_endpoint: endpoint } = members;
      if (typeof endpoint !== "string" || audience === undefined) return issuer;
      // The product ignores resource indicators (RFC 8707) and issues opaque tokens without an audience.
      const parameter = `${endpoint.includes("?") ? "&" : "?"}audience=${encodeURIComponent(audience)}`;
      return { ...issuer, authorization_endpoint: endpoint + parameter };
    }
    case McpIssuerKind.KEYCLOAK:
      if (members["registration_endpoint"] === undefined)
        throw new ProxyError("issuer_unavailable", { detail: "the metadata has no registration_endpoint" });
      // The product answers registrations without CORS headers, so that browsers could not read them.
      return { ...issuer, registration_endpoint: urls.document + REGISTRATION_ENDPOINT };
    default:
      return {};
  }
}

function addTokenEndpoint({ clientSecret }: McpResource, { document }: MetadataUrls): Members {
  return clientSecret === undefined ? {} : { token_endpoint: document + TOKEN_ENDPOINT };
}

/** Prints the answer to a registration (RFC 7591 §3.2.1) where every client is the one that the operator registered. */
export function printRegistration(clientId: string, request: Members): string {
  const { redirect_uris: uris } = request;
  return JSON.stringify({
    client_id: clientId,
    client_id_issued_at: 0,
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code"],
    response_types: ["code"],
    redirect_uris: Array.isArray(uris) ? uris : [],
  });
}

/** @returns undefined for a text that is not a JSON object */
export function parseMembers(text: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined; // the parser's message would repeat the text
  }
}
