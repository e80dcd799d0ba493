/** Parses addresses as people write them in flags and settings. The command line and the settings file use it. */
import { isIP } from "node:net";

export interface HostPort {
  /** "" stands for every address. */
  readonly host: string;
  readonly port: number;
}

/** Parses "host:port" or "[v6]:port". @returns undefined for other texts */
export function parseHostPort(text: string): HostPort | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) return undefined;
  return { host: match[1] ?? match[2] ?? "", port };
}

/** Decides whether a text is an IP address or a range such as "10.0.0.0/8". */
export function isAddressRange(text: string): boolean {
  const [address = "", bits, ...more] = text.split("/");
  const version = isIP(address);
  const fits = bits === undefined || (/^[0-9]{1,3}$/.test(bits) && Number(bits) <= (version === 6 ? 128 : 32));
  return version !== 0 && fits && more.length === 0;
}
