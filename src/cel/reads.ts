/**
 * Collects the attributes that a program can read, while the compiler visits its tree. The data plane buffers a body
 * only when an expression reads it.
 */
import type { Reads } from "./expression.ts";

const BODIES: ReadonlySet<string> = new Set(["body", "bodyPrefix"]);

export const READS_NOTHING: Reads = {
  roots: new Set(),
  requestBody: false,
  responseBody: false,
  attributes: new Set(),
};

export class ReadsCollector implements Reads {
  readonly roots: Set<string> = new Set();
  readonly attributes: Set<string> = new Set();
  requestBody = false;
  responseBody = false;

  /** @param field undefined when the root is used as a whole or with an index that is computed at run time */
  add(root: string, field: string | undefined): void {
    this.roots.add(root);
    this.attributes.add(`${root}.${field ?? "*"}`);
    const body = field === undefined || BODIES.has(field);
    if (root === "request" && body) this.requestBody = true;
    if (root === "response" && body) this.responseBody = true;
  }
}

/** Returns the reads of several programs of one policy together. */
export function unionOfReads(all: Iterable<Reads>): Reads {
  const union = new ReadsCollector();
  for (const reads of all) {
    for (const root of reads.roots) union.roots.add(root);
    for (const attribute of reads.attributes) union.attributes.add(attribute);
    union.requestBody ||= reads.requestBody;
    union.responseBody ||= reads.responseBody;
  }
  return union;
}
