/** The authority form of a request target, `host:port` (RFC 9112 §3.2.3), for all readers of CONNECT. */
const AUTHORITY_FORM = /^(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._~-]+):([0-9]{1,5})$/;

/** @returns the port, 1 to 65535; undefined when the text is not in authority form */
export function portOfAuthority(text: string): number | undefined {
  const port = Number(AUTHORITY_FORM.exec(text)?.[1]);
  return port > 0 && port <= 65_535 ? port : undefined;
}
