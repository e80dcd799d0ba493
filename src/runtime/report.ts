/**
 * Formats lines that `gwproxy up` and `gwproxy validate` print: diagnostics with their position, and the effect of a
 * change.
 */
import type { ApplyResult, ResourceUpdate } from "../ir/resource.ts";
import { takenBy } from "../lib/network/port-check.ts";
import { findPortHolder } from "../lib/network/port-holder.ts";
import type { SourceDiagnostic } from "../sources/source.ts";

/** Returns a diagnostic in the form that programs read. */
export function rowOf(diagnostic: SourceDiagnostic): SourceDiagnostic {
  const { file, line, column, object, path, severity, message, suggestion, effect } = diagnostic;
  const row = { file, line, column, object, path, severity, message, suggestion };
  return effect === undefined ? row : { ...row, effect };
}

/**
 * Formats a diagnostic as `file:line:column: error: GwPolicy default/x: spec.traffic: message (suggestion); kept: GwPolicy
 * default/x as accepted before`.
 */
export function diagnosticLine(diagnostic: SourceDiagnostic): string {
  const { file, line, column, object, path, severity, message, suggestion, effect } = diagnostic;
  const place = file === "" ? "" : `${file}:${line}:${column}: `;
  const subject = [object, path]
    .filter((part) => part !== "")
    .map((part) => `${part}: `)
    .join("");
  return `${place}${severity}: ${subject}${message}${suggestion === "" ? "" : ` (${suggestion})`}${effect === undefined ? "" : `; ${effect}`}`;
}

/** Names the objects of an update once each, such as "HttpRoute httproute/default/hello". */
export function changedNames(update: ResourceUpdate): { readonly set: string[]; readonly removed: string[] } {
  return {
    set: [...new Set(update.set.map(({ type, key }) => `${type} ${key}`))],
    removed: [...new Set(update.removed.map(({ type, key }) => `${type} ${key}`))],
  };
}

/**
 * Returns the URL at which a browser on this machine finds the console.
 * @param address "host:port" of the admin server; an address that stands for all becomes that of loopback
 */
export function consoleUrl(address: string): string {
  return `http://${address.replace(/^(?:0\.0\.0\.0|\[::\]|)(?=:\d+$)/, "127.0.0.1")}/`;
}

/** A port of a Gateway that could not be opened. */
export interface ClosedPort {
  /** Gateway as "namespace/name". */
  readonly gateway: string;
  readonly port: number;
  /** Cause, and what the user can do about it. */
  readonly reason: string;
}

/**
 * Returns the ports of the Binds that the proxy refused in a step; their keys have the form "port/namespace/gateway".
 * @param host the address that listeners bind
 */
export function closedPorts({ refused }: ApplyResult, host: string): ClosedPort[] {
  return refused
    .filter(({ type }) => type === "Bind")
    .map(({ key, reason }) => {
      const slash = key.indexOf("/");
      const port = Number(key.slice(0, slash));
      return { gateway: key.slice(slash + 1), port, reason: closedReason(host, port, reason) };
    });
}

function closedReason(host: string, port: number, reason: string): string {
  if (/\bEADDRINUSE\b/.test(reason)) return takenBy(findPortHolder(host, port), "change the port of the listener");
  if (/\bEACCES\b/.test(reason))
    return `${reason}; ports below 1024 need rights of their own: run as root, or change the port of the listener`;
  return reason;
}
