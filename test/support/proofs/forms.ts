/** Proofs of blocks that have a plain and a conditional form: one test body proves the fields of both. */
import { prove, type ProofContext } from "./prove.ts";

/** Turns a policy in flow YAML into the content of the block. */
export type Form = (policy: string) => string;

/**
 * @param block name of the block, such as "extAuth"
 * @param fields paths below a policy of the block, such as "grpc.contextExtensions"
 */
export function proveForms(
  block: string,
  fields: readonly string[],
  name: string,
  body: (context: ProofContext, form: Form) => Promise<void>,
): void {
  const root = `GwPolicy spec.traffic.${block}`;
  prove(
    fields.map((field) => `${root}.${field}`),
    name,
    (context) => body(context, (policy) => policy),
  );
  prove(
    fields.map((field) => `${root}.conditional[].policy.${field}`),
    `${name}, in a conditional form`,
    (context) => body(context, (policy) => `{conditional: [{policy: ${policy}}]}`),
  );
}
