/** Renders the environment variables of a data plane. `pod.ts` uses it. */
import type { EnvVar } from "../../../generated/types/parameters.ts";
import type { RenderContext } from "./context.ts";
import { meshVariables } from "./mesh.ts";
import { SESSION_KEY_ENTRY, SESSION_KEY_VARIABLE, sessionSecretName } from "./session-key.ts";
import { shutdownOf } from "./shutdown.ts";
import { CA_FOLDER } from "./volumes.ts";

/** Returns the variables, in which those of the parameters replace generated ones of the same name. */
export function environment(context: RenderContext): object[] {
  const { env = [] } = context.plan.parameters;
  const own = new Set(env.map(({ name }) => name));
  const generated = generatedVariables(context).filter(({ name }) => !own.has(name));
  return [...generated, ...env];
}

function generatedVariables(context: RenderContext): EnvVar[] {
  const { plan, settings } = context;
  const { min, max } = shutdownOf(plan.parameters);
  const field = (name: string, fieldPath: string): EnvVar => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  const key = { name: sessionSecretName(plan.gateway.name), key: SESSION_KEY_ENTRY };
  return [
    { name: "TERMINATION_GRACE_PERIOD_SECONDS", value: String(max) },
    { name: "CONNECTION_MIN_TERMINATION_DEADLINE", value: `${min}s` },
    field("NODE_NAME", "spec.nodeName"),
    // Clusters copy this label from nodes to pods since Kubernetes 1.35; elsewhere the variable is empty.
    field("NODE_ZONE", "metadata.labels['topology.kubernetes.io/zone']"),
    field("POD_NAMESPACE", "metadata.namespace"),
    field("POD_NAME", "metadata.name"),
    field("NAMESPACE", "metadata.namespace"),
    field("INSTANCE_IP", "status.podIP"),
    field("SERVICE_ACCOUNT", "spec.serviceAccountName"),
    { name: "CPU_LIMIT", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
    // The full name of the Gateway, even when object names are shortened (dataPlaneName): discovery identifies it by
    // this name.
    { name: "GATEWAY", value: plan.gateway.name },
    { name: "LOG_LEVEL", value: plan.parameters.logging?.level ?? "info" },
    { name: SESSION_KEY_VARIABLE, valueFrom: { secretKeyRef: key } },
    { name: "XDS_ADDRESS", value: settings.xdsAddress },
    ...(settings.xdsCa === undefined ? [] : [{ name: "XDS_ROOT_CA", value: `${CA_FOLDER}/ca.crt` }]),
    ...meshVariables(context),
    ...(settings.ambientIdentityHosts === ""
      ? []
      : [{ name: "GWPROXY_AMBIENT_IDENTITY_HOSTS", value: settings.ambientIdentityHosts }]),
  ];
}
