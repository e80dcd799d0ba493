/** Options that several commands share, and the parsers that refuse a bad value with a sentence. */
import { type Command, InvalidArgumentError } from "commander";
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
    .option(
      "--admin-address <host:port>",
      "admin server; keep it on loopback",
      address,
      address(process.env["ADMIN_ADDR"] ?? "127.0.0.1:15000"),
    )
    .option(
      "--metrics-address <host:port>",
      "Prometheus metrics",
      address,
      address(process.env["STATS_ADDR"] ?? "0.0.0.0:15020"),
    )
    .option(
      "--readiness-address <host:port>",
      "readiness probe",
      address,
      address(process.env["READINESS_ADDR"] ?? "0.0.0.0:15021"),
    )
    .option(
      "--log-level <filter>",
      "off, error, warn, info, debug or trace; module=level is possible",
      logFilter,
      process.env["LOG_LEVEL"] ?? "info",
    );
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

/** "namespace/name" */
export function namespacedName(text: string): string {
  if (!/^[^/\s]+\/[^/\s]+$/.test(text)) throw new InvalidArgumentError(`"${text}" is not NAMESPACE/NAME`);
  return text;
}
