/**
 * Renders the Secret with the key that seals sessions in all replicas of a data plane. It is created once and kept
 * forever: a new key would end every session.
 */
import { dataPlaneName } from "../../api/data-plane.ts";
import { objectMeta, type Manifest, type RenderContext } from "./context.ts";

const ENTRY = "key";

export const SESSION_KEY_ENTRY: string = ENTRY;

/** @param gateway name of the Gateway */
export function sessionSecretName(gateway: string): string {
  return dataPlaneName(`${dataPlaneName(gateway)}-session-key`);
}

export function renderSessionKey(context: RenderContext): Manifest {
  const { plan, sessionKey } = context;
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...objectMeta(context), name: sessionSecretName(plan.gateway.name) },
    type: "Opaque",
    data: { [ENTRY]: Buffer.from(sessionKey).toString("base64") },
  };
}
