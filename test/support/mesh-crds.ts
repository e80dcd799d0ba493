/**
 * CRDs of the size and shape of a service mesh's, for the time that `gwproxy generate types` takes: several served versions
 * of each kind, deep and repeated traffic settings, choices by oneOf and not, maps, patterns and lists with keys.
 */
import { stringify } from "yaml";

type Schema = Record<string, unknown>;

const TEXT = { type: "string" };
const DURATION = { type: "string", "x-kubernetes-validations": [{ rule: "duration(self) >= duration('1ms')" }] };
const VERSIONS = ["v1", "v1beta1", "v1alpha3"];

/** Of matches on texts: exactly one way, or none. */
function stringMatch(): Schema {
  const ways = ["exact", "prefix", "regex"];
  return {
    description: "How a text is matched.",
    type: "object",
    properties: Object.fromEntries(ways.map((way) => [way, { ...TEXT, description: `Matches by ${way}.` }])),
    oneOf: [{ not: { anyOf: ways.map((way) => ({ required: [way] })) } }, ...ways.map((way) => ({ required: [way] }))],
  };
}

/** @param variant makes shapes differ, as settings of neighbouring fields do */
function trafficPolicy(variant: number, depth: number): Schema {
  const limit = { type: "integer", format: "int32", minimum: 0, maximum: 1000 + variant };
  const pool = {
    type: "object",
    properties: {
      http: {
        type: "object",
        properties: { http1MaxPendingRequests: limit, maxRetries: limit, idleTimeout: DURATION },
      },
      tcp: { type: "object", properties: { maxConnections: limit, connectTimeout: DURATION } },
    },
  };
  const properties: Record<string, Schema> = {
    connectionPool: pool,
    outlierDetection: {
      type: "object",
      properties: { consecutive5xxErrors: { type: "integer", minimum: 0, nullable: true }, interval: DURATION },
    },
    tls: {
      type: "object",
      properties: {
        mode: { type: "string", enum: ["DISABLE", "SIMPLE", "MUTUAL"] },
        subjectAltNames: { type: "array", maxItems: 64, items: { ...TEXT, pattern: "^[a-z0-9.*-]{1,253}$" } },
      },
    },
  };
  if (depth > 0) {
    properties["portLevelSettings"] = { type: "array", maxItems: 4096, items: trafficPolicy(variant, depth - 1) };
    properties["subsets"] = {
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      items: {
        type: "object",
        required: ["name"],
        properties: {
          name: { type: "string", minLength: 1 },
          labels: { type: "object", additionalProperties: TEXT },
          trafficPolicy: trafficPolicy(variant + 1, depth - 1),
        },
      },
    };
  }
  return { description: "Settings of traffic.", type: "object", properties };
}

function specOf(kind: number): Schema {
  const routes = Array.from({ length: 4 }, (_, at) => [
    `route${at}`,
    {
      description: `Route ${at} of the kind, with matches and destinations.`,
      type: "array",
      items: {
        type: "object",
        properties: {
          match: {
            type: "array",
            items: {
              type: "object",
              properties: {
                uri: stringMatch(),
                headers: { type: "object", additionalProperties: stringMatch() },
                port: { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] },
              },
            },
          },
          weight: { type: "integer", format: "int32", minimum: 0, maximum: 100 + at },
          policy: trafficPolicy(kind * 20 + at, 1),
        },
      },
    },
  ]);
  return { type: "object", properties: Object.fromEntries(routes) };
}

/** @returns a file with that many CRDs, each of three versions */
export function meshCrds(count: number): string {
  return Array.from({ length: count }, (_, at) => {
    const openAPIV3Schema = {
      type: "object",
      properties: {
        spec: specOf(at),
        status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      },
    };
    return stringify(
      {
        apiVersion: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        metadata: { name: `meshkind${at}s.mesh.example.dev` },
        spec: {
          group: "mesh.example.dev",
          names: { kind: `MeshKind${at}`, plural: `meshkind${at}s` },
          scope: "Namespaced",
          versions: VERSIONS.map((name) => ({
            name,
            served: true,
            storage: name === "v1",
            schema: { openAPIV3Schema },
          })),
        },
      },
      { aliasDuplicateObjects: false },
    );
  }).join("---\n");
}
