/**
 * Parses SPIFFE_ENDPOINT_SOCKET (SPIFFE Workload Endpoint §4) into a gRPC address, for WorkloadApi. `workloadSocket`
 * gives the bare path to DestinationGuard.
 */
import { isIP } from "node:net";

const SOCKET = /^unix:(?:\/\/)?(\/(?!\/)[^?#]*)$/;

/** Returns the path of a Unix socket; undefined for other addresses. @param text in the form of `workloadAddress` */
export function workloadSocket(text: string | undefined): string | undefined {
  return text === undefined ? undefined : SOCKET.exec(text)?.[1];
}

/** @returns the address in the syntax of the gRPC library @throws TypeError when the text is not a valid endpoint */
export function workloadAddress(text: string): string {
  const socket = workloadSocket(text);
  if (socket !== undefined) return `unix:${socket}`;
  const [, v6, v4, digits] = /^tcp:\/\/(?:\[([^\]]+)\]|([^:/]+)):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (isIP(v6 ?? v4 ?? "") !== 0 && port > 0 && port < 65_536)
    return v6 === undefined ? `ipv4:${v4}:${port}` : `ipv6:[${v6}]:${port}`;
  throw new TypeError(`"${text}" is no workload API; give unix:///path/of/the.sock or tcp://127.0.0.1:8081`);
}
