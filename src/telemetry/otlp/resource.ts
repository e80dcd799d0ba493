/** Who reports: attributes of the data plane itself, as OpenTelemetry's conventions for resources name them. */
import type { Attribute } from "../attributes.ts";

export type Resource = readonly Attribute[];

/** Of the environment that the deployer gives to a pod. */
const FROM_ENVIRONMENT = {
  "k8s.pod.name": "POD_NAME",
  "k8s.namespace.name": "POD_NAMESPACE",
  "k8s.node.name": "NODE_NAME",
} as const;

/** @param environment as process.env. @param version "" where it is not known. What is not known is left out */
export function resourceOf(environment: Readonly<Record<string, string | undefined>>, version: string): Resource {
  const found = Object.entries(FROM_ENVIRONMENT).map(
    ([name, variable]) => [name, environment[variable] ?? ""] as const,
  );
  const service = [
    ["service.name", environment["OTEL_SERVICE_NAME"] || "gwproxy"],
    ["service.version", version],
  ] as const;
  return [...service, ...found].filter(([, value]) => value !== "");
}

/** @param named win over what the data plane says of itself */
export function withNamed(resource: Resource, named: Resource): Resource {
  return [...new Map([...resource, ...named])];
}
