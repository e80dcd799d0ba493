/**
 * Defines `prove`: a proof is a test through real sockets that names the fields it proves. Every feature test uses it.
 *
 * The same body serves three runs: as an ordinary test; as an entry of the ledger; and as a counter-proof with one
 * field altered before translation (removed, then with its second value). In a counter-proof the body has to fail, and
 * by an assertion about behaviour; another error would say nothing about the field.
 */
import assert, { AssertionError } from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { inspect, isDeepStrictEqual } from "node:util";
import { applyDefaults } from "../../../generated/defaults.ts";
import { validate } from "../../../src/admission/validate.ts";
import type { KubeObject } from "../../../src/api/object.ts";
import { alterField, type ChangeValue } from "./alter-field.ts";
import { findSecondValue } from "./second-values.ts";

/** The change that a counter-proof makes to the objects of the test before they reach the translator. */
export interface Alteration {
  alter(object: KubeObject): KubeObject;
}

export interface ProofContext {
  /** Registers clean-up, as in node:test. */
  after(clean: () => void | Promise<void>): void;
  /** The alteration of a counter-proof; undefined in an ordinary run. */
  readonly alteration?: Alteration | undefined;
}

export interface Proof {
  readonly field: string;
  readonly name: string;
  /** Runs in which the body has to fail: without the field, and with its second value if it has one. */
  readonly counterProofs: readonly CounterProof[];
}

export interface CounterProof {
  /** Title such as "without GwPolicy spec.traffic.timeouts.request". */
  readonly title: string;
  run(context: TestContext): Promise<void>;
}

/**
 * Thrown when a gateway or server of a test did not start. It says nothing about a field, so it is not an
 * AssertionError.
 */
export class NotReadyError extends Error {
  override readonly name = "NotReadyError";
}

/** All proofs; filled as feature files are loaded, and read by the ledger. */
export const proofs: Proof[] = [];

/** "list" only collects proofs for the ledger; otherwise the proofs run as tests. */
const mode = process.env["GWPROXY_FIELDS_MODE"] ?? "test";

type Body = (context: ProofContext) => Promise<void>;

/** @param fields "Kind path" as the ledger prints it, such as `GwPolicy spec.traffic.timeouts.request` */
export function prove(fields: string | readonly string[], name: string, body: Body): void {
  const list = typeof fields === "string" ? [fields] : fields;
  for (const field of list) proofs.push({ field, name, counterProofs: counterProofsOf(field, body) });
  if (mode === "test") test(name, (t) => body(contextOf(t)));
}

/** Returns the context with which the servers of `test/support` clean up. */
export function contextOf(t: TestContext, alteration?: Alteration): ProofContext {
  return { after: (clean) => t.after(clean), alteration };
}

/** Returns the runs in which the body has to fail: without the field, and with its second value if it has one. */
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
  /**
   * True when the run proves nothing if the field is required or its default is the value of the test; the second value
   * then proves the field.
   */
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
  /** True when admission would have refused an altered object. */
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

/** Fills in the defaults as an API server does. */
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
