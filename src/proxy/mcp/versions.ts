/**
 * The protocol versions that clients may speak. Up to 2025-11-25 a client opens a session with `initialize`; from
 * 2026-07-28 on every request stands for itself and says so in its headers ("modern").
 */
import type { HeaderList } from "../../lib/header-list.ts";
import { ERROR_CODES, McpError } from "./mcp-error.ts";

const SESSION_VERSIONS: readonly string[] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const MODERN_VERSIONS: readonly string[] = ["2026-07-28"];

/** Version of a request that names none and belongs to no session (2025-03-26 had no header for it). */
export const ASSUMED_VERSION = "2025-03-26";
/** Offered to clients that ask for a version that sessions do not know. */
export const HIGHEST_SESSION_VERSION = "2025-11-25";
/** The only version with batches. */
export const BATCH_VERSION = "2025-03-26";

export function isModern(version: string): boolean {
  return MODERN_VERSIONS.includes(version);
}

export function isSessionVersion(version: string): boolean {
  return SESSION_VERSIONS.includes(version);
}

/** Returns the version that a request claims. One that claims several has none that the gateway knows. */
export function claimedVersionOf(headers: HeaderList): string | undefined {
  const [version, ...others] = headers.getAll("mcp-protocol-version");
  return version === undefined || others.length === 0 ? version : [version, ...others].join(", ");
}

/**
 * The error lists the versions that `server/discover` offers; those with sessions are agreed on by `initialize`, whose
 * own error therefore lists none.
 * @param header value of Mcp-Protocol-Version @throws McpError for a version that the gateway does not know
 */
export function checkVersion(header: string | undefined, isInitialize = false): string | undefined {
  if (header === undefined || isModern(header) || isSessionVersion(header)) return header;
  const versions = `{"supported":${JSON.stringify(MODERN_VERSIONS)},"requested":${JSON.stringify(header)}}`;
  throw new McpError(ERROR_CODES.unsupportedVersion, "Unsupported protocol version", {
    status: 400,
    ...(isInitialize ? {} : { data: versions }),
  });
}
