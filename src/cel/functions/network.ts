/** IP addresses and ranges as CEL values: `ip("::1").family()`, `cidr("10.0.0.0/8").containsIP(source.address)`. */
import { isIP } from "node:net";

import type { Run } from "../budget.ts";
import type { CelFunction, Declaration } from "../function.ts";
import { COST_LIMIT, Failure, NO_OVERLOAD } from "../errors.ts";
import { Opaque } from "../values.ts";

export class Ip extends Opaque {
  readonly typeName = "net.IP";
  readonly family: 4 | 6;
  readonly bits: bigint;

  constructor(family: 4 | 6, bits: bigint) {
    super();
    this.family = family;
    this.bits = bits;
  }

  override equals(other: unknown): boolean {
    return other instanceof Ip && this.family === other.family && this.bits === other.bits;
  }

  override toText(): string {
    if (this.family === 4) return [24n, 16n, 8n, 0n].map((by) => String((this.bits >> by) & 255n)).join(".");
    const groups = Array.from({ length: 8 }, (_, at) => ((this.bits >> BigInt(112 - at * 16)) & 0xffffn).toString(16));
    // The URL parser prints the canonical, shortened form of IPv6 (RFC 5952).
    return new URL(`http://[${groups.join(":")}]/`).hostname.slice(1, -1);
  }
}

export class Cidr extends Opaque {
  readonly typeName = "net.CIDR";
  readonly ip: Ip;
  readonly prefixLength: number;

  /** Number of host bits below the prefix, and the value of the network bits above them. */
  readonly #free: bigint;
  readonly #network: bigint;

  constructor(ip: Ip, prefixLength: number) {
    super();
    this.ip = ip;
    this.prefixLength = prefixLength;
    this.#free = BigInt((ip.family === 4 ? 32 : 128) - prefixLength);
    this.#network = ip.bits >> this.#free;
  }

  get masked(): Ip {
    return new Ip(this.ip.family, this.#network << this.#free);
  }

  contains(ip: Ip): boolean {
    return ip.family === this.ip.family && ip.bits >> this.#free === this.#network;
  }

  override equals(other: unknown): boolean {
    return other instanceof Cidr && this.prefixLength === other.prefixLength && this.ip.equals(other.ip);
  }

  override toText(): string {
    return `${this.ip.toText()}/${this.prefixLength}`;
  }
}

/**
 * Parses an address. An IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2) becomes the IPv4 address.
 *
 * @param dotted whether "::ffff:10.0.0.1" is accepted; `ip()` and `cidr()` reject it, and every form rejects a zone
 */
export function parseIp(text: string, dotted = false): Ip | undefined {
  const family = isIP(text);
  if (family === 4) return new Ip(4, bitsOfV4(text));
  if (family !== 6 || text.includes("%")) return undefined;
  const bits = bitsOfV6(text);
  if (bits >> 32n !== 0xffffn) return new Ip(6, bits);
  return text.includes(".") && !dotted ? undefined : new Ip(4, bits & 0xffffffffn);
}

function bitsOfV4(text: string): bigint {
  return BigInt(text.split(".").reduce((bits, part) => bits * 256 + Number(part), 0));
}

function bitsOfV6(text: string): bigint {
  const dotted = /[^:]+\.[^:]+$/.exec(text)?.[0];
  const tail = dotted === undefined ? 0n : bitsOfV4(dotted);
  const hex = (bits: bigint): string => bits.toString(16);
  const plain = dotted === undefined ? text : text.replace(dotted, `${hex(tail >> 16n)}:${hex(tail & 0xffffn)}`);
  const [head = "", rest] = plain.split("::");
  const groupsOf = (part: string): string[] => (part === "" ? [] : part.split(":"));
  const front = groupsOf(head);
  const back = groupsOf(rest ?? "");
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => "0");
  return [...front, ...zeros, ...back].reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}

export function parseCidr(text: string): Cidr | undefined {
  const match = /^([0-9a-fA-F.:]{2,45})\/(0|[1-9]\d{0,2})$/.exec(text);
  const ip = match === null ? undefined : parseIp(match[1] as string);
  const length = Number(match?.[2]);
  return ip === undefined || length > (ip.family === 4 ? 32 : 128) ? undefined : new Cidr(ip, length);
}

const NOT_AN_IP = new Failure("invalid_argument", "not an IP address");
const NOT_A_CIDR = new Failure("invalid_argument", "not an address range");

const PARSE_STEPS = 30;

function ipOf(run: Run, value: unknown): Ip | Failure {
  if (value instanceof Ip) return value;
  if (run.spend(PARSE_STEPS)) return COST_LIMIT;
  return typeof value === "string" ? (parseIp(value) ?? NOT_AN_IP) : NO_OVERLOAD;
}

function cidrOf(run: Run, value: unknown): Cidr | Failure {
  if (value instanceof Cidr) return value;
  if (run.spend(PARSE_STEPS)) return COST_LIMIT;
  return typeof value === "string" ? (parseCidr(value) ?? NOT_A_CIDR) : NO_OVERLOAD;
}

function isText(test: (text: string) => boolean): CelFunction {
  return (run, text) => {
    if (typeof text !== "string") return NO_OVERLOAD;
    return run.spend(PARSE_STEPS) ? COST_LIMIT : test(text);
  };
}

const isCanonical: CelFunction = (run, text) => {
  if (typeof text !== "string") return NO_OVERLOAD;
  const ip = ipOf(run, text);
  return ip instanceof Failure ? ip : ip.toText() === text;
};

function onIp(apply: (ip: Ip) => unknown): CelFunction {
  return (_run, value) => (value instanceof Ip ? apply(value) : NO_OVERLOAD);
}

function onCidr(apply: (cidr: Cidr, other: unknown, run: Run) => unknown): CelFunction {
  return (run, value, other) => (value instanceof Cidr ? apply(value, other, run) : NO_OVERLOAD);
}

/** Returns a membership test for one range per family. */
function within(v4: string, v6: string): (ip: Ip) => boolean {
  const ranges = [parseCidr(v4), parseCidr(v6)];
  return (ip) => ranges.some((range) => range?.contains(ip) === true);
}

const isUnspecified = within("0.0.0.0/32", "::/128");
const isLoopback = within("127.0.0.0/8", "::1/128");
const isLinkLocalMulticast = within("224.0.0.0/24", "ff02::/16");
const isLinkLocalUnicast = within("169.254.0.0/16", "fe80::/10");
const isMulticast = within("224.0.0.0/4", "ff00::/8");
const isBroadcast = within("255.255.255.255/32", "::/128");

function isGlobalUnicast(ip: Ip): boolean {
  return ![isUnspecified, isLoopback, isLinkLocalUnicast, isMulticast, isBroadcast].some((test) => test(ip));
}

function containsIp(cidr: Cidr, other: unknown, run: Run): boolean | Failure {
  if (typeof other === "string" && run.spend(PARSE_STEPS)) return COST_LIMIT;
  // A string comes from a peer or a header in any spelling. A rule that denies a range must not miss one.
  const ip = typeof other === "string" ? (parseIp(other, true) ?? NOT_AN_IP) : ipOf(run, other);
  return ip instanceof Failure ? ip : cidr.contains(ip);
}

function containsCidr(cidr: Cidr, other: unknown, run: Run): boolean | Failure {
  const inner = cidrOf(run, other);
  if (inner instanceof Failure) return inner;
  return inner.prefixLength >= cidr.prefixLength && cidr.contains(inner.ip);
}

export const NETWORK_FUNCTIONS: readonly Declaration[] = [
  ["isIP(string): bool", isText((text) => parseIp(text) !== undefined)],
  ["isCIDR(string): bool", isText((text) => parseCidr(text) !== undefined)],
  ["ip(string | ip): ip", ipOf],
  ["cidr(string | cidr): cidr", cidrOf],
  ["ip.isCanonical(string): bool", isCanonical],
  [".family(ip): int", onIp((ip) => ip.family)],
  [".isUnspecified(ip): bool", onIp(isUnspecified)],
  [".isLoopback(ip): bool", onIp(isLoopback)],
  [".isLinkLocalMulticast(ip): bool", onIp(isLinkLocalMulticast)],
  [".isLinkLocalUnicast(ip): bool", onIp(isLinkLocalUnicast)],
  [".isGlobalUnicast(ip): bool", onIp(isGlobalUnicast)],
  [".ip(cidr): ip", onCidr(({ ip }) => ip)],
  [".masked(cidr): cidr", onCidr((cidr) => new Cidr(cidr.masked, cidr.prefixLength))],
  [".prefixLength(cidr): int", onCidr(({ prefixLength }) => prefixLength)],
  [".containsIP(cidr, ip | string): bool", onCidr(containsIp)],
  [".containsCIDR(cidr, cidr | string): bool", onCidr(containsCidr)],
];
