/** Parses origins of browsers (RFC 6454) for CORS and CSRF: scheme, host and port, with the default port filled in. */

const ORIGIN = /^(https?):\/\/(\[[0-9a-f:.]+\]|[^/?#:@[\]\s]+)(?::([0-9]{1,5}))?$/i;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: "80", https: "443" };

export interface Origin {
  /** "http" or "https" */
  readonly scheme: string;
  /** Lower case, without the port. */
  readonly host: string;
  readonly port: string;
}

/** @returns undefined for "null", other schemes and text that is not an origin */
export function parseOrigin(text: string): Origin | undefined {
  const [, scheme = "", host = "", port] = ORIGIN.exec(text) ?? [];
  if (host === "") return undefined;
  const lower = scheme.toLowerCase();
  return { scheme: lower, host: host.toLowerCase(), port: port ?? (DEFAULT_PORTS[lower] as string) };
}

/** Two origins are the same exactly when these texts are equal. */
export function originText({ scheme, host, port }: Origin): string {
  return `${scheme}://${host}:${port}`;
}
