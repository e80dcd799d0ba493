/**
 * Finds the session key of a Gateway, or generates one. `deployer.ts` uses it. An existing Secret is never overwritten.
 */
import { randomBytes } from "node:crypto";
import type { KubeObject } from "../api/object.ts";
import { nameKey } from "../api/refs.ts";
import { SourceError } from "../lib/errors.ts";
import type { ObjectClient } from "./client.ts";
import { controllerOf, ownerOf } from "./prune.ts";
import type { DeploymentPlan } from "../translator/gateways/deployment-plan.ts";
import { SESSION_KEY_ENTRY, sessionSecretName } from "./objects/session-key.ts";

const KEY_BYTES = 32;
const KEYS = /^[0-9a-f]{64}(,[0-9a-f]{64})*$/i;

/** @returns 64 hexadecimal digits or a comma list of such, a secret; undefined when the Secret holds no valid key */
export function sessionKeyOf(secret: KubeObject): string | undefined {
  const { data } = secret as { readonly data?: Readonly<Record<string, string>> }; // a Secret by its kind
  const text = Buffer.from(data?.[SESSION_KEY_ENTRY] ?? "", "base64").toString("utf8");
  return KEYS.test(text) ? text : undefined;
}

/**
 * @param known the Secret as last observed
 * @throws SourceError for an existing Secret without a key, because a new key would end the sessions that it may
 * protect, and for one that something else controls
 */
export async function findSessionKey(
  client: ObjectClient,
  { gateway }: Pick<DeploymentPlan, "gateway">,
  known: KubeObject | undefined,
): Promise<string> {
  const id = { group: "", kind: "Secret", namespace: gateway.namespace, name: sessionSecretName(gateway.name) };
  // A Secret that was not observed may exist all the same, and its key must be kept, so the server is asked.
  const secret = known ?? (await client.read(id));
  if (secret === undefined) return randomBytes(KEY_BYTES).toString("hex");
  const controller = controllerOf(secret);
  // That of an earlier Gateway of the same name is about to be collected.
  const isOwn = controller === undefined || ownerOf(secret)?.gateway === nameKey(gateway);
  if (!isOwn) {
    const owner = `${controller.kind} ${controller.name}`;
    throw new SourceError(
      `Secret ${id.namespace}/${id.name} belongs to ${owner}; delete it, or bring a key in the variable SESSION_KEY`,
    );
  }
  const key = sessionKeyOf(secret);
  if (key !== undefined) return key;
  throw new SourceError(
    `Secret ${id.namespace}/${id.name} holds no session key: its entry "${SESSION_KEY_ENTRY}" must be 64 hexadecimal ` +
      "digits; mend or delete it",
  );
}
