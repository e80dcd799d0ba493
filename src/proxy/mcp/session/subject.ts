/**
 * Finds out who a request is from, by what policies have verified, so that the session of one user is of no use to
 * another. External authorization names nobody.
 */
import { Secret } from "../../../cel/values.ts";
import type { Exchange } from "../../exchange/exchange.ts";
import { digestSubject } from "./record.ts";

/** Roots of expressions that name a user, the strongest first, with the members that tell users apart. */
const ROOTS: readonly (readonly [root: string, members: readonly string[]])[] = [
  ["jwt", ["iss", "sub"]],
  ["apiKey", ["key"]],
  ["basicAuth", ["username"]],
];
/** @returns a digest, so that sessions hold no name; undefined when nothing has authenticated the request */
export function subjectOf(exchange: Pick<Exchange, "root">): string | undefined {
  for (const [root, members] of ROOTS) {
    const known = exchange.root(root);
    if (known === undefined) continue;
    const values = members.map((member) => textOf(memberOf(known, member)));
    // Without the member, all users of the policy are one.
    return digestSubject(JSON.stringify([root, ...values]));
  }
  return certificateOf(exchange.root("source"));
}

/** The issuer exists only when a CA of the listener has verified the certificate; without one it names nobody. */
function certificateOf(source: unknown): string | undefined {
  if (textOf(memberOf(source, "issuer")) === "") return undefined;
  const name = textOf(memberOf(source, "spiffeId")) || textOf(memberOf(source, "certificate"));
  return digestSubject(JSON.stringify(["certificate", name]));
}

function memberOf(object: unknown, name: string): unknown {
  if (object === null || typeof object !== "object") return undefined;
  if ("get" in object && typeof object.get === "function") return object.get(name);
  return Object.hasOwn(object, name) ? Reflect.get(object, name) : undefined;
}

function textOf(value: unknown): string {
  // The key of an API client is a secret; only a digest of it is kept, in a sealed session.
  if (value instanceof Secret) return value.reveal();
  return typeof value === "string" ? value : "";
}
