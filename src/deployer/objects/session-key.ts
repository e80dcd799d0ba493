/** The key by which all replicas of a data plane seal sessions. Made once, kept for ever: a new one ends every session. */
import { dataPlaneName } from "../../api/data-plane.ts";
import { objectMeta, type Manifest, type RenderContext } from "../context.ts";

const ENTRY = "key";

export const SESSION_KEY_ENTRY: string = ENTRY;

/** @param gateway name of the Gateway */
export function sessionSecretName(gateway: string): string {
  return dataPlaneName(`${dataPlaneName(gateway)}-session-key`);
}

export function renderSessionKey(context: RenderContext): Manifest {
  const { placement, sessionKey } = context;
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...objectMeta(context), name: sessionSecretName(placement.gateway.name) },
    type: "Opaque",
    data: { [ENTRY]: Buffer.from(sessionKey).toString("base64") },
  };
}
