/**
 * The paths at which clients of a protected resource look for OAuth metadata: its own (RFC 9728 §3.1) and that of its
 * authorization server (RFC 8414 §3.1). The router and the policies that serve the metadata read requests with it.
 */

/** What a request asks for; the last two are endpoints that belong to the authorization server. */
export type MetadataKind = "resource" | "server" | "registration" | "token";

export interface MetadataPath {
  readonly kind: MetadataKind;
  /** Path of the protected resource; "" for the root. */
  readonly resource: string;
  /** The path without the name of an endpoint: endpoints are below the document that names them. */
  readonly document: string;
}

const WELL_KNOWN = "/.well-known/oauth-";
const RESOURCE = `${WELL_KNOWN}protected-resource`;
const SERVER = `${WELL_KNOWN}authorization-server`;

export const REGISTRATION_ENDPOINT = "/client-registration";
export const TOKEN_ENDPOINT = "/token";

/** Decides whether a path lies among the well-known ones of a host. */
export function isWellKnown(path: string): boolean {
  return path.startsWith(WELL_KNOWN);
}

/** Returns the path of the metadata of a protected resource. @param path of the resource */
export function resourceMetadataPath(path: string): string {
  // RFC 9728 §3.1: a slash that ends the host is left out.
  return path === "/" ? RESOURCE : RESOURCE + path;
}

/**
 * Reads a path. The metadata of an authorization server is also found behind the path of the resource, where older
 * clients look for it.
 * @param hasTokens the token endpoint exists; otherwise its path is that of a resource
 */
export function parseMetadataPath(path: string, hasTokens: boolean): MetadataPath | undefined {
  if (!path.includes(WELL_KNOWN)) return undefined;
  const resource = below(path, RESOURCE);
  if (resource !== undefined) return { kind: "resource", resource, document: path };
  for (const [endpoint, kind] of endpoints(hasTokens)) {
    const document = path.endsWith(endpoint) ? path.slice(0, -endpoint.length) : undefined;
    const found = document === undefined ? undefined : serverResource(document);
    if (document !== undefined && found !== undefined) return { kind, resource: found, document };
  }
  const found = serverResource(path);
  return found === undefined ? undefined : { kind: "server", resource: found, document: path };
}

function endpoints(hasTokens: boolean): readonly (readonly [string, MetadataKind])[] {
  const registration = [REGISTRATION_ENDPOINT, "registration"] as const;
  return hasTokens ? [registration, [TOKEN_ENDPOINT, "token"]] : [registration];
}

/** Returns the resource whose authorization server a path names; undefined for another path. */
function serverResource(path: string): string | undefined {
  const behind = path.endsWith(SERVER) ? path.slice(0, -SERVER.length) : undefined;
  return behind ?? below(path, SERVER);
}

function below(path: string, prefix: string): string | undefined {
  const rest = path.startsWith(prefix) ? path.slice(prefix.length) : undefined;
  return rest === "" || rest?.startsWith("/") === true ? rest : undefined;
}
