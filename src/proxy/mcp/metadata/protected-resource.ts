/**
 * A protected resource as OAuth clients see it (RFC 9728): its metadata, and the challenge that leads to it. The policy
 * `jwtAuthentication` serves it for routes, and the MCP handler for the block `mcp.authentication` of a backend.
 */
import type { McpResource } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { pathOf } from "../../../lib/network/request-target.ts";
import type { Exchange, Reply } from "../../exchange/exchange.ts";
import { createMetadataApp } from "./app.ts";
import { parseMembers } from "./documents.ts";
import { Issuer, type IssuerDeps } from "./issuer.ts";
import { parseMetadataPath, resourceMetadataPath } from "./paths.ts";

export interface ProtectedResource {
  /** Answers a request for metadata, a registration or a token; undefined for any other request. */
  answer(exchange: Exchange): Promise<Reply> | undefined;
  /** Returns the value of WWW-Authenticate (RFC 6750 §3, RFC 9728 §5.1). @param isInvalid a token was sent */
  challenge(exchange: Exchange, isInvalid: boolean): string;
}

export function compileProtectedResource(spec: McpResource, deps: IssuerDeps): ProtectedResource {
  const metadata = parseMembers(spec.metadataJson) ?? {};
  const app = createMetadataApp(spec, metadata, new Issuer(spec, deps));
  const hasTokens = spec.clientSecret !== undefined;
  const origin = originOf(metadata["resource"]);
  const scope = scopeOf(metadata["scopes_supported"]);
  return {
    answer(exchange) {
      const { originalTarget, method } = exchange;
      const path = pathOf(originalTarget);
      const asked = parseMetadataPath(path, hasTokens && (method === "POST" || method === "OPTIONS"));
      if (asked === undefined) return undefined;
      const base = publicOrigin(exchange);
      const issuer = base + asked.resource;
      const resource = issuer + originalTarget.slice(path.length);
      return app({ exchange, kind: asked.kind, urls: { resource, issuer, document: base + asked.document } });
    },
    challenge(exchange, isInvalid) {
      const path = resourceMetadataPath(pathOf(exchange.originalTarget));
      const url = quotable((origin ?? publicOrigin(exchange)) + path);
      return `Bearer ${isInvalid ? 'error="invalid_token", ' : ""}resource_metadata="${url}"${scope}`;
    },
  };
}

/**
 * Returns the origin under which the client reached the gateway. The header holds the scheme of the connection, or what
 * a trusted proxy says; a stranger's is removed on arrival.
 */
function publicOrigin({ requestHeaders, originalScheme, originalHost }: Exchange): string {
  const forwarded = requestHeaders.get("x-forwarded-proto")?.toLowerCase();
  const scheme = forwarded === "http" || forwarded === "https" ? forwarded : originalScheme;
  return `${scheme}://${originalHost}`;
}

/** Returns the origin of the resource that the operator named; undefined when it is not a URL. */
function originOf(resource: unknown): string | undefined {
  return typeof resource === "string" && URL.canParse(resource) && /^https?:/i.test(resource)
    ? new URL(resource).origin
    : undefined;
}

/** Characters of a scope (RFC 6749 §3.3). */
const SCOPE = /^[\u0021\u0023-\u005b\u005d-\u007e]+$/;

function scopeOf(scopes: unknown): string {
  const names = Array.isArray(scopes) ? scopes.filter((name) => typeof name === "string" && SCOPE.test(name)) : [];
  return names.length === 0 ? "" : `, scope="${names.join(" ")}"`;
}

/** Escapes what would end the quoted string: the client chose the path. */
function quotable(url: string): string {
  return url.replaceAll(/[^\u0021\u0023-\u005b\u005d-\u007e]/g, (character) => encodeURIComponent(character));
}
