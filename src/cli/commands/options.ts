/** Options that several commands share, and the parsers that refuse a bad value with a sentence. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseLogFilter } from "../../lib/log.ts";

export interface DataPlaneOptions {
  readonly bindAddress: string;
  readonly adminAddress: Address;
  readonly metricsAddress: Address;
  readonly readinessAddress: Address;
  readonly logLevel: string;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

export function addDataPlaneOptions(command: Command): Command {
  return command
    .option("--bind-address <ip>", "address that listeners bind", "0.0.0.0")
    .addOption(
      addressOption("--admin-address <host:port>", "admin server; keep it on loopback", "127.0.0.1:15000").env(
        "ADMIN_ADDR",
      ),
    )
    .addOption(addressOption("--metrics-address <host:port>", "Prometheus metrics", "0.0.0.0:15020").env("STATS_ADDR"))
    .addOption(
      addressOption("--readiness-address <host:port>", "readiness probe", "0.0.0.0:15021").env("READINESS_ADDR"),
    )
    .addOption(logLevelOption().env("LOG_LEVEL"));
}

/** An option that takes "host:port", with its default shown as it would be typed. */
export function addressOption(flags: string, description: string, standard: string): Option {
  return new Option(flags, description).argParser(address).default(address(standard), standard);
}

export function logLevelOption(): Option {
  return new Option("--log-level <filter>", "off, error, warn, info, debug or trace; module=level is possible")
    .argParser(logFilter)
    .default("info");
}

/** "host:port" or "[v6]:port"; port 0 takes a free one. */
export function address(text: string): Address {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) throw new InvalidArgumentError(`"${text}" is not HOST:PORT`);
  return { host: match[1] ?? match[2] ?? "", port };
}

export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

export function choice(...allowed: readonly string[]): (value: string) => string {
  return (value) => {
    if (allowed.includes(value)) return value;
    throw new InvalidArgumentError(`choose one of: ${allowed.join(", ")}`);
  };
}

export function logFilter(text: string): string {
  if (parseLogFilter(text) === undefined)
    throw new InvalidArgumentError(`"${text}" is not a log filter; try "info" or "info,proxy=debug"`);
  return text;
}

/** "true" or "false" */
export function flag(text: string): boolean {
  if (text === "true" || text === "false") return text === "true";
  throw new InvalidArgumentError(`"${text}" is neither true nor false`);
}

/** "namespace/name" */
export function namespacedName(text: string): string {
  if (!/^[^/\s]+\/[^/\s]+$/.test(text)) throw new InvalidArgumentError(`"${text}" is not NAMESPACE/NAME`);
  return text;
}
