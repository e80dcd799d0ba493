/**
 * Checks that the routing headers of a modern request (2026-07-28, "Standard Headers") say the same as its body, so that
 * what routes and policies decided by headers holds for what the server does. The client side calls it before anything
 * reads the message.
 */
import type { HeaderList } from "../../../lib/header-list.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { decodeHeaderValue } from "../message/header-value.ts";
import type { Message } from "../message/message.ts";
import { findMember, stringAt } from "../message/spans.ts";
import { findMethod, type Method } from "../methods.ts";
import { isModern } from "../versions.ts";

const META_VERSION = "io.modelcontextprotocol/protocolVersion";

/** Returns the version that a message claims in `_meta`. */
function claimedVersion({ bytes, payload }: Message): string | undefined {
  return payload === undefined ? undefined : stringAt(bytes, payload, "_meta", META_VERSION);
}

/** @param version of the header, which is a modern one @returns the method @throws McpError with status 400 or 404 */
export function checkModernRequest(message: Message, version: string, headers: HeaderList): Method {
  const { method = "" } = message;
  const claimed = claimedVersion(message);
  if (claimed === undefined) {
    if (method === "initialize") throw mismatch("initialize belongs to versions with sessions");
    throw new McpError(ERROR_CODES.invalidParams, `Invalid params: _meta must hold ${META_VERSION}`, { status: 400 });
  }
  if (claimed !== version) throw mismatch("Mcp-Protocol-Version differs from the version in _meta");
  checkMethodHeader(message, headers, true);
  const row = findMethod(method);
  if (row === undefined || !row.inModern) throw unknownMethod(404);
  checkName(message, row, headers);
  return row;
}

/** Checks a modern notification, whose headers may be left out. @throws McpError with status 400 */
export function checkModernNotification(message: Message, version: string, headers: HeaderList): void {
  refuseOtherVersion(message, version);
  checkMethodHeader(message, headers, false);
}

/**
 * Refuses a body that claims another version than its header, which policies may have decided by.
 * @param version of the header; a body of a modern version must have one
 * @throws McpError with status 400
 */
export function refuseOtherVersion(message: Message, version: string | undefined): void {
  const claimed = claimedVersion(message);
  if (claimed === undefined || claimed === version) return;
  if (version !== undefined) throw mismatch("Mcp-Protocol-Version differs from the version in _meta");
  if (isModern(claimed)) throw mismatch("Mcp-Protocol-Version is missing");
}

/** @param status 404 for modern clients; 200 in sessions, which clients would leave at a 404 */
export function unknownMethod(status: number): McpError {
  return new McpError(ERROR_CODES.methodNotFound, "Method not found", { status });
}

function checkMethodHeader({ method }: Message, headers: HeaderList, isRequired: boolean): void {
  const [value, ...others] = headers.getAll("mcp-method");
  if (value === undefined && isRequired) throw mismatch("Mcp-Method is missing");
  if (value !== undefined && (others.length > 0 || decodeHeaderValue(value) !== method))
    throw mismatch("Mcp-Method differs from the method");
}

function checkName({ bytes, payload }: Message, { named }: Method, headers: HeaderList): void {
  if (named.length === 0) return;
  const found = payload === undefined ? undefined : findMember(bytes, payload, ...named);
  const name = found === undefined || payload === undefined ? undefined : stringAt(bytes, payload, ...named);
  const value = headers.get("mcp-name");
  if (value === undefined && name === undefined) return;
  if (value === undefined) throw mismatch("Mcp-Name is missing");
  if (headers.getAll("mcp-name").length > 1 || decodeHeaderValue(value) !== name)
    throw mismatch(`Mcp-Name differs from params.${named.join(".")}`);
}

function mismatch(reason: string): McpError {
  return new McpError(ERROR_CODES.headerMismatch, `Bad Request: ${reason}`, { status: 400 });
}
