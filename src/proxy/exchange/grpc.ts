/**
 * Recognises gRPC in HTTP messages (gRPC over HTTP/2, "Requests" and "Timeout"), for error replies, backends, external
 * authorization and reports.
 */
import type { HeaderList } from "../../lib/header-list.ts";

const CONTENT_TYPE = /^application\/grpc(?:$|[+; ])/i;
const TIMEOUT = /^([0-9]{1,8})([HMSmun])$/;
const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/** Returns false for gRPC-Web, which is forwarded like any other HTTP. */
export function isGrpc(headers: HeaderList): boolean {
  const type = headers.get("content-type");
  return type !== undefined && CONTENT_TYPE.test(type);
}

/** Returns how long the caller waits for a response; undefined when it sets no limit. */
export function grpcTimeoutMs(headers: HeaderList): number | undefined {
  const found = TIMEOUT.exec(headers.get("grpc-timeout") ?? "");
  return found === null ? undefined : Number(found[1]) * (UNIT_MS[found[2] as string] as number);
}
