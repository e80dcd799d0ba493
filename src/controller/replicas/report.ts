/**
 * The report in which a replica of the controller tells the others what its data planes have acknowledged and refused:
 * a JSON text in a ConfigMap. `replica-acknowledgements.ts` builds and reads it.
 */
import { isRecord } from "../../lib/is-record.ts";

/** What the data planes of one Gateway have acknowledged. */
export interface GatewayReport {
  /** Digest of the resources that they should hold (`tracked-resources.ts`). */
  readonly resources: string;
  /** Whether one of them has opened a socket. */
  readonly bound: boolean;
  /** Keys of policies and listeners that none of them has acknowledged. */
  readonly missing: readonly string[];
}

export interface ReportedRefusal {
  readonly gateway: string;
  readonly type: string;
  readonly key: string;
  readonly reason: string;
}

export interface Report {
  readonly gateways: Readonly<Record<string, GatewayReport>>;
  readonly refused: readonly ReportedRefusal[];
}

/** Room for 3,000 Gateways; a ConfigMap holds 1 MiB. */
const MAX_REPORT_CHARACTERS = 500_000;
/** Reasons are long, and whoever mends the first hundred is told of the next. */
const MAX_REFUSED = 100;

/** @returns the text, and the number of Gateways that it has no room for */
export function printReport({ gateways, refused }: Report): { readonly text: string; readonly leftOut: number } {
  const shown = refused.slice(0, MAX_REFUSED);
  let room = MAX_REPORT_CHARACTERS - JSON.stringify(shown).length;
  const entries = Object.entries(gateways).filter(([gateway, report]) => {
    room -= gateway.length + JSON.stringify(report).length + 4;
    return room >= 0;
  });
  const text = JSON.stringify({ gateways: Object.fromEntries(entries), refused: shown });
  return { text, leftOut: Object.keys(gateways).length - entries.length };
}

/** @returns undefined for a text that is not a report, such as one of a later version */
export function parseReport(text: string): Report | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(value) || !isRecord(value["gateways"]) || !Array.isArray(value["refused"])) return undefined;
  const entries = Object.entries(value["gateways"]);
  const refused: readonly unknown[] = value["refused"];
  if (!entries.every((entry): entry is [string, GatewayReport] => isGatewayReport(entry[1]))) return undefined;
  return refused.every(isRefusal) ? { gateways: Object.fromEntries(entries), refused } : undefined;
}

function isGatewayReport(value: unknown): value is GatewayReport {
  return (
    isRecord(value) &&
    typeof value["resources"] === "string" &&
    typeof value["bound"] === "boolean" &&
    Array.isArray(value["missing"])
  );
}

function isRefusal(value: unknown): value is ReportedRefusal {
  return isRecord(value) && ["gateway", "type", "key", "reason"].every((name) => typeof value[name] === "string");
}
