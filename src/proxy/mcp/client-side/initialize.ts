/** Reads what a client says of itself in `initialize`, and the version that was negotiated. */
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessage, type Message } from "../message/message.ts";
import { findMember, stringAt, textOf } from "../message/spans.ts";
import { removeMembers, setMember, splice } from "../message/splice.ts";
import type { ClientInfo } from "../session/session.ts";
import { HIGHEST_SESSION_VERSION, isSessionVersion } from "../versions.ts";

const OPEN_BRACE = 0x7b;

/** Capabilities by which a server asks its client, which nothing can do without a session. */
const ASKING = ["roots", "sampling", "elicitation", "tasks"] as const;

export interface Initialize {
  /** As targets shall read it: with a version that sessions know. */
  readonly message: Message;
  readonly client: ClientInfo;
}

/** @param isStateless leaves out what a server could ask of the client @throws McpError for params that are no such */
export function readInitialize(message: Message, isStateless: boolean): Initialize {
  const { bytes, payload } = message;
  const asked = payload === undefined ? undefined : stringAt(bytes, payload, "protocolVersion");
  if (payload === undefined || asked === undefined) throw invalid("protocolVersion");
  const capabilities = findMember(bytes, payload, "capabilities");
  if (capabilities !== undefined && bytes[capabilities.start] !== OPEN_BRACE) throw invalid("capabilities");
  const version = isSessionVersion(asked) ? asked : HIGHEST_SESSION_VERSION;
  const edits = version === asked ? [] : setMember(bytes, payload, "protocolVersion", JSON.stringify(version));
  if (isStateless && capabilities !== undefined) edits.push(...removeMembers(bytes, capabilities, ...ASKING));
  const client = {
    version,
    capabilities: capabilities === undefined ? "{}" : textOf(bytes, capabilities),
    name: stringAt(bytes, payload, "clientInfo", "name") ?? "",
    clientVersion: stringAt(bytes, payload, "clientInfo", "version") ?? "",
  };
  if (edits.length === 0) return { message, client };
  const changed = readMessage(
    splice(
      bytes,
      edits.toSorted((a, b) => a.start - b.start),
    ),
  );
  if ("code" in changed) throw invalid("params");
  return { message: changed, client };
}

/** Returns the version that a target chose; undefined when its result names none. */
export function negotiatedVersion({ bytes, payload }: Message): string | undefined {
  return payload === undefined ? undefined : stringAt(bytes, payload, "protocolVersion");
}

function invalid(name: string): McpError {
  return new McpError(ERROR_CODES.invalidParams, `Invalid params: ${name}`, { status: 400 });
}
