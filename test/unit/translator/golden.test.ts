/**
 * Golden cases of the translator: objects as an operator would write them, a line `# Output`, then what is sent and what
 * status says. Comments before the objects describe the case; `# refused: Kind/name` hands an object over as refused by
 * admission, `# acknowledged` computes status as after an ACK. `UPDATE_GOLDEN=1` rewrites the outputs.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { test } from "node:test";
import { parseAllDocuments, stringify } from "yaml";
import { objectId, objectKey, type KubeObject } from "../../../src/api/object.ts";
import { byTypeAndKey, printable } from "../../../src/ir/print.ts";
import { computeStatus } from "../../../src/status/compute.ts";
import type { DesiredCondition, DesiredStatus } from "../../../src/status/desired.ts";
import { createTranslator } from "../../../src/translator/translate.ts";
import type { TranslatorEvent } from "../../../src/translator/translator.ts";

const ROOT = join(import.meta.dirname, "../../golden/translator");
const MARK = "# Output\n";
const CONTROLLER = "gwproxy.dev/gwproxy";

for (const path of globSync(join(ROOT, "**/*.yaml")).sort()) {
  test(`translator golden case ${relative(ROOT, path)}`, () => {
    const text = readFileSync(path, "utf8");
    const [input = "", expected = ""] = text.split(MARK);
    const output = translate(input);
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(path, `${input}${MARK}${output}`);
    else assert.equal(expected, output, "run with UPDATE_GOLDEN=1 and review the difference");
  });
}

function translate(input: string): string {
  const refused = new Set([...input.matchAll(/^# refused: (.+)$/gm)].map((match) => match[1]));
  const objects = parseAllDocuments(input)
    .map((document): unknown => document.toJS())
    .filter((object): object is KubeObject => object !== null);
  const events = objects.map((object): TranslatorEvent => {
    const id = objectId(object);
    if (refused.has(`${id.kind}/${id.name}`)) return { type: "refused", id, object, reason: "refused in this case" };
    return { type: "set", object };
  });
  const translator = createTranslator({
    controllerName: CONTROLLER,
    implicitClass: "gwproxy",
    inferencePools: "pods-and-slices",
  });
  translator.apply(events);
  const acknowledged = /^# acknowledged$/m.test(input);
  const resources = [...translator.resources()].sort(byTypeAndKey);
  const status = objects.flatMap((object) => {
    const facts = translator.statusInput(objectId(object));
    if (facts === undefined) return [];
    const context = {
      controllerName: CONTROLLER,
      // Listeners count as acknowledged in every case, and policies where the case says so.
      acknowledged: (key: string) => acknowledged || !key.startsWith("policy/"),
      hasDataPlane: () => true,
      nackReason: () => undefined,
    };
    return [computeStatus(facts, context)];
  });
  return stringify(
    {
      resources: resources.map((resource) => ({ [resource.type]: printable(resource) })),
      status: Object.fromEntries(status.map((one) => [objectKey(one.id), printStatus(one)])),
    },
    { lineWidth: 0, aliasDuplicateObjects: false },
  );
}

function printStatus(status: DesiredStatus): unknown {
  if (status.form === "listed")
    return status.entries.map(({ ref, conditions }) => ({ ref: Object.values(ref).join("/"), ...printed(conditions) }));
  return {
    ...printed(status.conditions),
    ...Object.fromEntries(
      (status.listeners ?? []).map(({ name, attachedRoutes, supportedKinds, conditions }) => [
        `listener ${name}`,
        { attachedRoutes, supportedKinds: supportedKinds.map(({ kind }) => kind), ...printed(conditions) },
      ]),
    ),
  };
}

function printed(conditions: readonly DesiredCondition[]): Record<string, string> {
  return Object.fromEntries(
    conditions.map(({ type, status, reason, message }) => [type, `${status} ${reason}: ${message}`]),
  );
}
