/**
 * Translates what MCP clients are told about a protected resource and its issuer, for `traffic.jwtAuthentication.mcp`
 * and `mcp.authentication`.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { MCPAuthentication } from "../../../../generated/types/mcp-policy.ts";
import {
  ExternalServiceSchema,
  McpClientSecretSchema,
  McpIssuerKind,
  McpResourceSchema,
  type ExternalService,
  type McpResource,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { SecretReader } from "../../references/secrets.ts";
import type { Report } from "../../shared/report.ts";
import { parseOrigin } from "./external-service.ts";

/** The members that both blocks have, and the secret, which only one of them has. */
type McpResourceBlock = Pick<MCPAuthentication, "resourceMetadata" | "provider" | "clientId" | "clientSecretRef">;

/** The issuer of the only provider, as the tokens name it. */
type Issuer = Required<Pick<MCPAuthentication, "issuer" | "audiences">>;

const KINDS: ReadonlyMap<string, McpIssuerKind> = new Map([
  ["idpA", McpIssuerKind.AUTH0],
  ["idpB", McpIssuerKind.KEYCLOAK],
]);
const DEFAULT_ENTRY = "clientSecret";

/** @param report takes paths relative to the block */
export function translateMcpResource(
  { resourceMetadata = {}, provider, clientId = "", clientSecretRef }: McpResourceBlock,
  { issuer, audiences }: Issuer,
  secrets: SecretReader,
  report: Report,
): McpResource {
  const metadata = Object.entries(resourceMetadata)
    .map(([name, value]) => [snakeCase(name), value] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  checkResource(resourceMetadata["resource"], audiences, report);
  return create(McpResourceSchema, {
    issuer,
    kind: kindOf(provider, report),
    audiences: [...audiences],
    metadataJson: metadata.length === 0 ? "" : JSON.stringify(Object.fromEntries(metadata)),
    clientId,
    ...(clientSecretRef === undefined ? {} : { clientSecret: readSecret(clientSecretRef, clientId, secrets, report) }),
    issuerService: issuerService(issuer),
  });
}

/** An unknown product behaves as none (the field is not an enum in this revision of the API). */
function kindOf(provider: string | undefined, report: Report): McpIssuerKind {
  const kind = KINDS.get(provider ?? "");
  if (kind !== undefined || provider === undefined || provider === "") return kind ?? McpIssuerKind.UNSPECIFIED;
  report(
    "provider",
    `"${provider}" is not known and has no effect; known are ${[...KINDS.keys()].join(", ")}`,
    "warning",
  );
  return McpIssuerKind.UNSPECIFIED;
}

/** Clients ask for tokens for the resource that the metadata names; the gateway takes those for `audiences`. */
function checkResource(resource: unknown, audiences: readonly string[], report: Report): void {
  if (typeof resource !== "string" || audiences.length === 0 || audiences.includes(resource)) return;
  report(
    "resourceMetadata.resource",
    `"${resource}" is not among the audiences; its tokens will be refused`,
    "warning",
  );
}

function readSecret(
  { key, ...ref }: NonNullable<McpResourceBlock["clientSecretRef"]>,
  clientId: string,
  secrets: SecretReader,
  report: Report,
): MessageInitShape<typeof McpClientSecretSchema> {
  if (clientId === "") report("clientSecretRef", "clientId is required: the secret is added for that client only");
  const found = secrets.entry(ref, key ?? DEFAULT_ENTRY);
  if ("value" in found) return { value: found.value };
  report("clientSecretRef", found.error);
  return { value: "" };
}

/** The translators of the blocks report an issuer that is not a URL, each at its own path. */
function issuerService(issuer: string): ExternalService {
  const origin = parseOrigin(issuer);
  if (origin !== undefined) return create(ExternalServiceSchema, { place: { case: "origin", value: origin } });
  return create(ExternalServiceSchema, { invalidReason: "the issuer is not an http or https URL" });
}

/** "jwksURI" becomes "jwks_uri", as RFC 9728 spells its members. */
function snakeCase(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replaceAll(/([A-Z]+)([A-Z][a-z])/g, "$1_$2")
    .toLowerCase();
}
