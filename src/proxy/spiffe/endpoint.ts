/** Where the workload API is (standard "SPIFFE Workload Endpoint" 4): SPIFFE_ENDPOINT_SOCKET as an address to dial. */
import { isIP } from "node:net";

/** @returns the address in the words of the gRPC library @throws TypeError that says what is wrong with the text */
export function workloadAddress(text: string): string {
  const unix = /^unix:(?:\/\/)?(\/(?!\/)[^?#]*)$/.exec(text);
  if (unix !== null) return `unix:${unix[1]}`;
  const [, v6, v4, digits] = /^tcp:\/\/(?:\[([^\]]+)\]|([^:/]+)):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (isIP(v6 ?? v4 ?? "") !== 0 && port > 0 && port < 65_536)
    return v6 === undefined ? `ipv4:${v4}:${port}` : `ipv6:[${v6}]:${port}`;
  throw new TypeError(`"${text}" is no workload API; give unix:///path/of/the.sock or tcp://127.0.0.1:8081`);
}
