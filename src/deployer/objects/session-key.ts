/**
 * Renders the Secret with the key that seals sessions in all replicas of a data plane. It is created once and kept
 * forever: a new key would end every session.
 */
import { dataPlaneName } from "../../api/data-plane.ts";
import type { DeploymentPlan } from "../../translator/gateways/deployment-plan.ts";
import { objectMeta, type Manifest, type RenderContext } from "./context.ts";

const ENTRY = "key";

export const SESSION_KEY_ENTRY: string = ENTRY;

/** @param gateway name of the Gateway */
export function sessionSecretName(gateway: string): string {
  return dataPlaneName(`${dataPlaneName(gateway)}-session-key`);
}

/** Variable through which a data plane gets its key. */
export const SESSION_KEY_VARIABLE = "SESSION_KEY";

/** Decides whether the parameters bring a session key of their own, so that none is generated. */
export function bringsSessionKey({ parameters }: Pick<DeploymentPlan, "parameters">): boolean {
  return (parameters.env ?? []).some(({ name }) => name === SESSION_KEY_VARIABLE);
}

/** @returns undefined when the parameters bring a key of their own */
export function renderSessionKey(context: RenderContext): Manifest | undefined {
  const { plan, sessionKey } = context;
  if (sessionKey === undefined) return undefined;
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...objectMeta(context), name: sessionSecretName(plan.gateway.name) },
    type: "Opaque",
    data: { [ENTRY]: Buffer.from(sessionKey).toString("base64") },
  };
}
