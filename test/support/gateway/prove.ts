/**
 * A proof is a test through real sockets that names the fields it proves. The same body serves three runs: as an
 * ordinary test; as an entry of the ledger; and with one field altered before translation (taken away, then with its
 * second value), when it has to fail by an assertion about behaviour.
 */
import assert, { AssertionError } from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { inspect, isDeepStrictEqual } from "node:util";
import { applyDefaults } from "../../../generated/defaults.ts";
import { validate } from "../../../src/admission/validate.ts";
import type { KubeObject } from "../../../src/api/object.ts";
import { alterField, type ChangeValue } from "./alter-field.ts";
import { findSecondValue } from "./second-values.ts";

/** What a counter-proof does to the objects of the test before they reach the translator. */
export interface Alteration {
  alter(object: KubeObject): KubeObject;
}

export interface ProofContext {
  /** Registers clean-up, as in node:test. */
  after(clean: () => void | Promise<void>): void;
  /** undefined in an ordinary run */
  readonly alteration?: Alteration | undefined;
}

export interface Proof {
  readonly field: string;
  readonly name: string;
  /** Runs the body with the field taken away, or with its second value; rejects unless an assertion of it fails. */
  readonly counterProofs: readonly CounterProof[];
}

export interface CounterProof {
  /** "without GwPolicy spec.traffic.timeouts.request" */
  readonly title: string;
  run(context: TestContext): Promise<void>;
}

/** A gateway or server of a test did not come up: this says nothing about a field, so it is not an AssertionError. */
export class NotReadyError extends Error {
  override readonly name = "NotReadyError";
}

/** Filled as feature files are loaded; read by the ledger. */
export const proofs: Proof[] = [];

/** "list": only collect, for the ledger. Otherwise the ordinary tests. */
const mode = process.env["GWPROXY_FIELDS_MODE"] ?? "test";

type Body = (context: ProofContext) => Promise<void>;

/** @param fields "Kind path", as the ledger prints them: `GwPolicy spec.traffic.timeouts.request` */
export function prove(fields: string | readonly string[], name: string, body: Body): void {
  const list = typeof fields === "string" ? [fields] : fields;
  for (const field of list) proofs.push({ field, name, counterProofs: counterProofsOf(field, body) });
  if (mode === "test") test(name, (t) => body(contextOf(t)));
}

/** What the servers of `test/support` clean up with. */
export function contextOf(t: TestContext, alteration?: Alteration): ProofContext {
  return { after: (clean) => t.after(clean), alteration };
}

/** The runs in which the body has to fail: without the field, and with its second value where it has one. */
export function counterProofsOf(field: string, body: Body): CounterProof[] {
  const second = findSecondValue(field);
  const without: Expectation = {
    title: `without ${field}`,
    field,
    change: () => undefined,
    isOptional: second !== undefined,
  };
  if (second === undefined) return [counterProof(without, body)];
  return [
    counterProof(without, body),
    counterProof({ title: `with another ${field}`, field, change: second, isOptional: false }, body),
  ];
}

interface Expectation {
  readonly title: string;
  readonly field: string;
  readonly change: ChangeValue;
  /** Nothing is expected where the field is required, or its default is what the test sets: the second value proves it. */
  readonly isOptional: boolean;
}

function counterProof({ title, field, change, isOptional }: Expectation, body: Body): CounterProof {
  return {
    title,
    async run(t) {
      const alteration = new FieldAlteration(field, change);
      const failure = await failureOf(() => body(contextOf(t, alteration)));
      if (isOptional && (!alteration.hasAltered || alteration.isRefused)) return;
      if (!alteration.hasAltered) throw new Error(`nothing is altered ${title}`, { cause: failure });
      if (failure === undefined) assert.fail(`the proof passes ${title}`);
      if (!(failure instanceof AssertionError)) {
        throw new Error(`${title} the proof fails, but not by an assertion: ${inspect(failure)}`, { cause: failure });
      }
    },
  };
}

class FieldAlteration implements Alteration {
  readonly #field: string;
  readonly #change: ChangeValue;
  hasAltered = false;
  /** Admission would not have let an altered object in. */
  isRefused = false;

  constructor(field: string, change: ChangeValue) {
    this.#field = field;
    this.#change = change;
  }

  alter(object: KubeObject): KubeObject {
    const altered = fillDefaults(alterField(object, this.#field, this.#change));
    if (isDeepStrictEqual(altered, object)) return object;
    this.hasAltered = true;
    this.isRefused ||= validate(altered).some(({ severity }) => severity === "error");
    return altered;
  }
}

/** As an API server stores it. */
function fillDefaults(object: KubeObject): KubeObject {
  const group = object.apiVersion.includes("/") ? object.apiVersion.slice(0, object.apiVersion.indexOf("/")) : "";
  return applyDefaults(`${group}/${object.kind}`, object);
}

async function failureOf(run: () => Promise<void>): Promise<unknown> {
  try {
    await run();
    return undefined;
  } catch (error) {
    return error;
  }
}
