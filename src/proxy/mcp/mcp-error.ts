/**
 * The error with which MCP requests end: a JSON-RPC error object with the status of the HTTP answer that carries it.
 * Everything below `src/proxy/mcp` throws it; `printError` alone turns it into bytes.
 */
import { GwError } from "../../lib/errors.ts";

/** Codes of JSON-RPC 2.0 §5.1 and of MCP. */
export const ERROR_CODES = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  /** Resources before 2026-07-28. */
  resourceNotFound: -32_002,
  /** Routing headers and body disagree (2026-07-28). */
  headerMismatch: -32_020,
  /** The client has to open a URL first (2025-11-25). */
  urlElicitationRequired: -32_042,
  /** The version is unknown (2026-07-28). */
  unsupportedVersion: -32_022,
} as const;

export interface McpErrorOptions {
  /** Status of the answer where nothing was sent yet; 200 by default, as for every JSON-RPC error of a session. */
  readonly status?: number;
  /** JSON text of the member `data`. */
  readonly data?: string;
  /** For the log only. */
  readonly detail?: string;
  readonly cause?: unknown;
}

export class McpError extends GwError {
  readonly code = "mcp_error";
  /** Member `code` of the error object. */
  readonly rpcCode: number;
  readonly status: number;
  readonly data: string | undefined;

  /** @param text for the client; it must hold no secret, no session id and nothing of another tenant */
  constructor(rpcCode: number, text: string, options: McpErrorOptions = {}) {
    super(text, options);
    this.rpcCode = rpcCode;
    this.status = options.status ?? 200;
    this.data = options.data;
  }
}

/** Prints the JSON-RPC error message. @param id JSON text of the request's id; undefined where none could be read */
export function printError({ rpcCode, message, data }: McpError, id: string | undefined): Buffer {
  const extra = data === undefined ? "" : `,"data":${data}`;
  const error = `{"code":${rpcCode},"message":${JSON.stringify(message)}${extra}}`;
  return Buffer.from(`{"jsonrpc":"2.0","id":${id ?? "null"},"error":${error}}`);
}
