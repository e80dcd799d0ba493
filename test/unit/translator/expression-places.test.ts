/**
 * The schema says in which phase each expression of `traffic` runs. The translator has to check it for that phase, and the
 * data plane has to compile it for the same one: nowhere else is the place of a field written down.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { EXPRESSIONS, type ExpressionPlace } from "../../../generated/expressions.ts";
import type { GwPolicy } from "../../../generated/types/policy.ts";
import { PolicySchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { valuesAt } from "../../../src/admission/paths.ts";
import { validate } from "../../../src/admission/validate.ts";
import { compileExpression } from "../../../src/cel/compile/compile-expression.ts";
import { environmentOf, type CelPhase } from "../../../src/cel/environments/phases.ts";
import { PolicySet } from "../../../src/proxy/policies/policy-set.ts";
import type { Read } from "../../../src/lib/collections/graph.ts";
import { translateContent, type ContentCollections } from "../../../src/translator/policies/content.ts";
import { makeDeps } from "../../support/gateway/exchange.ts";
import { KINDS, objectOf } from "../../support/fixtures/objects/kinds.ts";
import { Random } from "../../support/fixtures/objects/random.ts";
import { soundSpec } from "../../support/fixtures/objects/repair.ts";

const POLICY = "gwproxy.dev/GwPolicy";
const KIND = KINDS.find(({ groupKind }) => groupKind === POLICY);
/** Reads what its place does not have. */
const FOREIGN: Readonly<Partial<Record<CelPhase, string>>> = {
  gateway: "string(proxy.route.name)",
  request: "string(response.code)",
  response: "string(callout.body)",
};
const OWN: Readonly<Partial<Record<CelPhase, string>>> = {
  gateway: "proxy.listener.name",
  request: "proxy.route.name",
  response: "string(response.code)",
};
/** What depends on a sibling: the costs of requests are known before the answer, those of tokens after it. */
const BY_SIBLING = /\.cost$/;

const NOTHING: Read = { get: () => undefined, byIndex: () => [], members: () => [], size: () => 0 };

function policyWith(path: readonly string[], text: string, phase: string): { policy: GwPolicy; paths: string[] } {
  assert.ok(KIND);
  const spec = soundSpec(KIND, new Random(7), 0, { steps: path.slice(1) });
  assert.ok(spec !== undefined, `no sound policy with ${path.join(".")}`);
  const object = objectOf(KIND, structuredClone(spec));
  const paths: string[] = [];
  for (const { path: holder, value } of valuesAt(object, path.slice(0, -1))) {
    // Where a pattern of fields leads to, there is an object or a list.
    const members = value as Record<string, unknown>;
    const last = path.at(-1) ?? "";
    for (const name of last === "*" ? Object.keys(members) : [last]) {
      if (typeof members[name] !== "string") continue;
      members[name] = text;
      paths.push(Array.isArray(members) ? `${holder}[${name}]` : `${holder}.${name}`);
    }
  }
  // It has the shape of a policy: the generator made it.
  const policy = object as GwPolicy;
  return {
    policy: { ...policy, spec: { ...policy.spec, traffic: { ...policy.spec.traffic, phase } as never } },
    paths,
  };
}

function translated(policy: GwPolicy) {
  // Nothing is looked up in collections: the reader finds nothing, whatever it is asked.
  return translateContent(policy, {} as ContentCollections, NOTHING);
}

function faultsOf(policy: GwPolicy): string[] {
  return translated(policy).diagnostics.flatMap(({ path, message }) =>
    message.startsWith("unknown") || message.startsWith("no such") ? [path] : [],
  );
}

/** The places for which the data plane compiles the text. */
function compiledFor(policy: GwPolicy, text: string): Set<CelPhase> {
  const places = new Set<CelPhase>();
  const { units, phase } = translated(policy);
  const deps = makeDeps();
  const policies = new PolicySet({
    ...deps,
    // Nothing is called: the policies are only compiled.
    callout: () => ({ path: "" }) as never,
    expression(source, place) {
      if (source === text) places.add(place);
      return deps.expression(source, place);
    },
  });
  policies.compile(create(PolicySchema, { key: "policy/default/x", phase, units: [...units] }), "1");
  return places;
}

const placeIn = ({ environment }: ExpressionPlace, phase: string): CelPhase =>
  phase === "PreRouting" && environment === "request" ? "gateway" : environment;

for (const entry of EXPRESSIONS[POLICY] ?? []) {
  if (entry.path[1] !== "traffic") continue;
  for (const phase of ["PostRouting", "PreRouting"]) {
    const place = placeIn(entry, phase);
    test(`${entry.path.join(".")} is held to the ${place} phase with ${phase}`, () => {
      const foreign = policyWith(entry.path, FOREIGN[place] ?? "", phase);
      assert.ok(foreign.paths.length > 0);
      assert.deepEqual(new Set(faultsOf(foreign.policy)), new Set(foreign.paths));
      const admitted = validate(foreign.policy).filter(({ message }) => message.includes("does not compile"));
      assert.deepEqual(new Set(admitted.map(({ path }) => path)), new Set(foreign.paths));
      const text = OWN[place] ?? "";
      assert.ok(compileExpression(text, environmentOf(place)));
      const own = policyWith(entry.path, text, phase);
      if (BY_SIBLING.test(entry.path.join("."))) return;
      assert.deepEqual(faultsOf(own.policy), []);
      assert.deepEqual(compiledFor(own.policy, text), new Set([place]));
    });
  }
}
