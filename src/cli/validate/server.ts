/**
 * Asks a cluster's API server about the same objects and merges its verdicts with ours, for `gwproxy validate
 * --server`.
 */
import { FatalError, messageOf } from "../../lib/errors.ts";
import { byPlace } from "../../sources/directory/assemble.ts";
import { type CheckedObject, type FileDiagnostic, titleOf } from "../../sources/directory/check.ts";
import { createKubernetesClient } from "../../sources/kubernetes/client.ts";
import { createDryRun, type ServerViolation } from "../../sources/kubernetes/dry-run.ts";
import type { ValidateOptions } from "./validate.ts";

type Checker = "gwproxy" | "server";

/** A diagnostic, and which of the two reported it. */
export interface AttributedDiagnostic extends FileDiagnostic {
  readonly saidBy: readonly Checker[];
}

export interface DryRunResults {
  /** Address of the API server that was asked. */
  readonly server: string;
  /** Diagnostics by object, in the order of the objects. */
  readonly violations: readonly (readonly ServerViolation[])[];
}

/** Number of concurrent requests: enough to hide the round-trip time, too few to be throttled by the server. */
const AT_ONCE = 8;

/** @throws FatalError with exit code 2 when the server cannot be asked, because the result would be incomplete */
export async function askServer(
  objects: readonly CheckedObject[],
  { kubeconfig, context }: Pick<ValidateOptions, "kubeconfig" | "context">,
): Promise<DryRunResults> {
  const client = await createKubernetesClient(kubeconfig, context).catch(couldNotAsk);
  try {
    const dryRun = createDryRun(client);
    const violations: ServerViolation[][] = [];
    for (let at = 0; at < objects.length; at += AT_ONCE) {
      const batch = objects.slice(at, at + AT_ONCE).map((checked) => dryRun.check(asWritten(checked)));
      violations.push(...(await Promise.all(batch).catch(couldNotAsk)));
    }
    return { server: client.server, violations };
  } finally {
    client.close();
  }
}

function couldNotAsk(error: unknown): never {
  throw new FatalError(`the API server cannot be asked: ${messageOf(error)}`, 2, error);
}

/** Returns the object as kubectl would send it: as it is written, in the namespace that it is assumed to be in. */
function asWritten({ object, written }: CheckedObject): CheckedObject["object"] {
  const { namespace } = object.metadata;
  const metadata = { ...(written["metadata"] as object), ...(namespace === undefined ? {} : { namespace }) };
  // The cast holds: the envelope was checked when the file was read.
  return { ...written, metadata } as CheckedObject["object"];
}

/** Merges both lists. The same message about the same field becomes one diagnostic that both reported. */
export function mergeDiagnostics(
  own: readonly FileDiagnostic[],
  objects: readonly CheckedObject[],
  { violations }: DryRunResults,
): AttributedDiagnostic[] {
  const merged = own.map((diagnostic): AttributedDiagnostic => ({ ...diagnostic, saidBy: ["gwproxy"] }));
  for (const [at, checked] of objects.entries()) {
    for (const error of violations[at] ?? []) {
      const diagnostic = diagnosticOf(checked, error);
      const twin = merged.findIndex((other) => isSame(other, diagnostic));
      const known = merged[twin];
      if (known === undefined) merged.push(diagnostic);
      else if (!known.saidBy.includes("server")) merged[twin] = { ...known, saidBy: ["gwproxy", "server"] };
    }
  }
  return merged.sort(byPlace);
}

function diagnosticOf(checked: CheckedObject, error: ServerViolation): AttributedDiagnostic {
  const { file, id, object } = checked;
  const mark = checked.mark(error.path, error.reason === "StrictDecoding" ? "name" : "value");
  const about = { object: titleOf(object), groupKind: `${id.group}/${id.kind}`, lost: undefined };
  return { ...error, ...mark, ...about, file, saidBy: ["server"] };
}

/**
 * Whether two diagnostics are the same. A warning from a webhook carries its path in the text, as kubectl prints it, so it
 * is compared with the whole line of ours.
 */
function isSame(a: AttributedDiagnostic, b: AttributedDiagnostic): boolean {
  if (a.file !== b.file || a.object !== b.object) return false;
  if (a.path === b.path && a.message === b.message) return true;
  const line = a.path === "" ? a.message : `${a.path}: ${a.message}`;
  const withNext = a.suggestion === "" ? line : `${line} (${a.suggestion})`;
  return b.path === "" && (b.message === line || b.message === withNext);
}
