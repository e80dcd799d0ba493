/**
 * The table of objects for the rules of our kinds: `<kind>/<subject>.yaml`, a `base` and `cases` over it. Each object goes
 * to a real API server and to admission; both must give the verdict, the paths and the words that the table says.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parse } from "yaml";
import { KINDS } from "../../generated/kinds.ts";
import { type Fault, byText } from "../support/kubernetes/server-verdict.ts";

export interface Case {
  readonly name: string;
  /** "gwbackend/llm.yaml" */
  readonly file: string;
  readonly kind: string;
  readonly plural: string;
  readonly object: object;
  /** Sorted; empty when both must take the object. */
  readonly faults: readonly Fault[];
}

interface Table {
  /** Members of the spec of every case that does not say otherwise. */
  readonly base?: object;
  readonly cases: readonly Written[];
}

/** One fault is written as `path` and `message` of the case, several as `faults`. */
interface Written {
  readonly name: string;
  readonly spec: object;
  readonly verdict: "accept" | "refuse";
  readonly path?: string;
  readonly message?: string;
  readonly faults?: readonly Fault[];
}

export function loadCases(): Case[] {
  return globSync("*/*.yaml", { cwd: import.meta.dirname })
    .sort()
    .flatMap((file) => {
      const entry = KINDS.find(({ owned, kind }) => owned && kind.toLowerCase() === dirname(file));
      if (entry === undefined) throw new Error(`${file}: the folder must be one of our kinds in small letters`);
      // What a case lacks is found below, or by the comparison with the API server.
      const { base, cases } = parse(readFileSync(join(import.meta.dirname, file), "utf8")) as Table;
      return cases.map((one) => caseOf({ ...one, spec: { ...base, ...one.spec } }, file, entry));
    });
}

function objectOf(kind: string, spec: unknown): object {
  return { apiVersion: "gwproxy.dev/v1alpha1", kind, metadata: { name: "x", namespace: "default" }, spec };
}

function caseOf(
  { name, spec, verdict, path, message, faults }: Written,
  file: string,
  { kind, plural }: { readonly kind: string; readonly plural: string },
): Case {
  const single = message === undefined ? [] : [{ path: path ?? "", message }];
  const all = [...(faults ?? []), ...single].sort(byText);
  if (verdict !== "accept" && verdict !== "refuse") throw new Error(`${file}: ${name}: the verdict is unknown`);
  if ((verdict === "accept") !== (all.length === 0)) throw new Error(`${file}: ${name}: verdict and faults disagree`);
  return { name, file, kind, plural, object: objectOf(kind, spec), faults: all };
}
