/**
 * How far our CRDs are from the API server's limits on the cost of rules. The server tells only when a limit is crossed,
 * so each spec is put into a list that may hold 2, 4, 8 … of it: the longest list that is taken is the margin.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parse } from "yaml";
import { KINDS } from "../../generated/kinds.ts";
import { type ApiServer, startApiServer } from "../testbed/api-server.ts";

/** A later rule that touches a list must not come as a surprise: this much room is kept. */
const ROOM = 2;
const ENOUGH = 256;
let server: ApiServer;

before(async () => {
  server = await startApiServer();
});

after(async () => {
  await server?.stop();
});

interface Crd {
  readonly spec: { readonly versions: readonly [{ readonly schema: { openAPIV3Schema: Schema } }] };
}

interface Schema {
  properties: Record<string, unknown>;
}

/** The CRD with room for `copies` of its spec. */
function multiplied(text: string, copies: number): string {
  // A generated file of ours.
  const crd = parse(text) as Crd;
  const root = crd.spec.versions[0].schema.openAPIV3Schema;
  const copy = { type: "array", maxItems: copies, items: root.properties["spec"] };
  root.properties = { ...root.properties, spec: { type: "object", properties: { copies: copy } } };
  return JSON.stringify(crd);
}

/** @returns what the server has against it; undefined when it takes it */
async function fault(crd: string): Promise<string | undefined> {
  try {
    await server.kubectl(["create", "--dry-run=server", "-f", "-"], crd);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

for (const { kind, plural, group } of KINDS.filter(({ owned }) => owned)) {
  test(`the rules of ${kind} cost at most 1/${ROOM} of what the API server allows`, async (t) => {
    const text = readFileSync(join(import.meta.dirname, `../../crds/${group}_${plural}.yaml`), "utf8");
    assert.equal(await fault(multiplied(text, ROOM)), undefined);
    let copies = ROOM;
    while (copies < ENOUGH && (await fault(multiplied(text, copies * 2))) === undefined) copies *= 2;
    t.diagnostic(`${kind}: the API server takes the rules ${copies}${copies < ENOUGH ? "" : " or more"} times over`);
  });
}
