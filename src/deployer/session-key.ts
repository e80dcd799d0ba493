/** Finds the session key of a Gateway, or makes one. What somebody else put in its place is never written over. */
import { randomBytes } from "node:crypto";
import type { KubeObject } from "../api/object.ts";
import { SourceError } from "../lib/errors.ts";
import type { ObjectClient } from "./client.ts";
import { SESSION_KEY_ENTRY, sessionSecretName } from "./objects/session-key.ts";

const KEY_BYTES = 32;
const KEY = /^[0-9a-f]{64}$/i;

/** @returns 64 hexadecimal digits; undefined when the Secret holds none. It is a secret. */
export function sessionKeyOf(secret: KubeObject): string | undefined {
  const { data } = secret as { readonly data?: Readonly<Record<string, string>> }; // a Secret by its kind
  const text = Buffer.from(data?.[SESSION_KEY_ENTRY] ?? "", "base64").toString("utf8");
  return KEY.test(text) ? text : undefined;
}

/**
 * @param known the Secret as last seen
 * @throws SourceError for a Secret of that name without a key: a new one would end the sessions that it may hold
 */
export async function findSessionKey(
  client: ObjectClient,
  gateway: { readonly namespace: string; readonly name: string },
  known: KubeObject | undefined,
): Promise<string> {
  const id = { group: "", kind: "Secret", namespace: gateway.namespace, name: sessionSecretName(gateway.name) };
  // What was seen may be old, and a key that is there already must stay.
  const secret = known ?? (await client.read(id));
  if (secret === undefined) return randomBytes(KEY_BYTES).toString("hex");
  const key = sessionKeyOf(secret);
  if (key !== undefined) return key;
  throw new SourceError(
    `Secret ${id.namespace}/${id.name} holds no session key: its entry "${SESSION_KEY_ENTRY}" must be 64 hexadecimal ` +
      "digits; mend or delete it",
  );
}
