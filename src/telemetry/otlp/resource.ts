/** Resource attributes of the data plane, named by the OpenTelemetry semantic conventions. Sent with every export. */
import type { Attribute } from "../attributes.ts";

export type Resource = readonly Attribute[];

/** Environment variables that the deployer sets in a pod. */
const FROM_ENVIRONMENT = {
  "k8s.pod.name": "POD_NAME",
  "k8s.namespace.name": "POD_NAMESPACE",
  "k8s.node.name": "NODE_NAME",
} as const;

/**
 * Unknown attributes are omitted.
 * @param environment as process.env
 * @param version "" when unknown
 */
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

/** @param named override the data plane's own attributes */
export function withNamed(resource: Resource, named: Resource): Resource {
  return [...new Map([...resource, ...named])];
}
