/** Renders the volumes of a data plane's pods, each with its place in the container. `pod.ts` uses it. */
import { dataPlaneName, TOKEN_AUDIENCE, TOKEN_FILE } from "../../api/data-plane.ts";
import type { RenderContext } from "./context.ts";
import { meshVolumes } from "./mesh.ts";
import { spiffeVolume } from "./spiffe.ts";

export const CA_FOLDER = "/etc/xds-tls";
const TOKEN_SECONDS = 43_200;

export interface PodVolume {
  readonly name: string;
  readonly mountPath: string;
  /** Member of the volume that says where its content comes from. */
  readonly source: object;
  readonly isWritable?: true;
}

export function podVolumes(context: RenderContext): readonly PodVolume[] {
  const { plan, settings } = context;
  const name = dataPlaneName(plan.gateway.name);
  const token = { audience: TOKEN_AUDIENCE, expirationSeconds: TOKEN_SECONDS, path: TOKEN_FILE };
  const spiffe = spiffeVolume(plan.parameters);
  return [
    { name: "config-volume", mountPath: "/config", source: { configMap: { name } } },
    { name: "tmp", mountPath: "/tmp", source: { emptyDir: {} }, isWritable: true },
    {
      name: "xds-token",
      mountPath: "/var/run/secrets/xds-tokens",
      source: { projected: { sources: [{ serviceAccountToken: token }] } },
    },
    ...(settings.xdsCa === undefined
      ? []
      : [{ name: "xds-ca", mountPath: CA_FOLDER, source: { configMap: { name: `${name}-xds-ca` } } }]),
    ...meshVolumes(context),
    ...(spiffe === undefined ? [] : [{ name: "spiffe-workload-api", ...spiffe }]),
  ];
}
