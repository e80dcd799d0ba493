/** Objects that must and must not compile as GwPolicy: checked by `tsc`, never run. */
import {
  kindOfBackendAuth,
  kindOfBasicAuthentication,
  kindOfExtAuthPolicy,
  kindOfJwks,
  kindOfPolicyEndpoint,
} from "../../generated/unions.ts";
import type { BackendAuth } from "../../generated/types/backend-auth.ts";
import type { BackendFull, BackendSimple } from "../../generated/types/backend-policies.ts";
import type { Frontend } from "../../generated/types/frontend.ts";
import type { GwPolicy } from "../../generated/types/policy.ts";
import type { Traffic } from "../../generated/types/traffic.ts";
import type { BasicAuthentication, Jwks } from "../../generated/types/traffic-authentication.ts";
import type { ExtAuthPolicy } from "../../generated/types/traffic-external.ts";
import type { KubeObject } from "../../src/api/object.ts";

const head = { apiVersion: "gwproxy.dev/v1alpha1", kind: "GwPolicy", metadata: { name: "p" } };
const gateway = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "g" };

export const whole: GwPolicy = {
  ...head,
  spec: {
    targetRefs: [gateway],
    strategy: { inheritance: "Override" },
    traffic: {
      phase: "PostRouting",
      apiKeyAuthentication: { secretRef: { name: "keys" }, location: { header: { name: "x-api-key" } } },
      authorization: { action: "Require", policy: { matchExpressions: ["apiKey.tier == 'gold'"] } },
      rateLimit: { conditional: [{ condition: "true", policy: { local: [{ tokens: 5, unit: "Hours" }] } }] },
      transformation: { response: { add: [{ name: ":status", value: "201u" }] } },
      directResponse: { status: 418, bodyExpression: "request.path" },
      headerModifiers: { request: { remove: ["cookie"] } },
      timeouts: { request: "1m30s" },
    },
  },
};

// Every object of a kind can be handled as an object of any kind.
export const anyKind: KubeObject = whole;

// @ts-expect-error a policy says what it is about
export const withoutSpec: GwPolicy = head;

export const unknownField: Traffic = {
  // @ts-expect-error the field is `timeouts`
  timeout: { request: "1s" },
};

// @ts-expect-error a value that the schema does not list
export const unknownValue: Traffic = { phase: "Routing" };

// @ts-expect-error a limit names its unit
export const withoutUnit: Traffic = { rateLimit: { local: [{ requests: 1 }] } };

// @ts-expect-error the form in an entry has a status
export const withoutStatus: Traffic = { directResponse: { conditional: [{ policy: { body: "x" } }] } };

export function change(traffic: Traffic): void {
  // @ts-expect-error objects that were delivered are never changed
  traffic.phase = "PreRouting";
  // @ts-expect-error nor are their lists
  traffic.rateLimit?.local?.push({ requests: 1, unit: "Seconds" });
}

export const edge: GwPolicy = {
  ...head,
  spec: {
    targetRefs: [{ ...gateway, port: 8443 }],
    frontend: {
      tls: { minProtocolVersion: "1.3", cipherSuites: ["TLS13_AES_128_GCM_SHA256"] },
      http: { maxBufferSize: "4Mi", http2FrameSize: 32_768 },
      connect: { mode: "Deny" },
      accessLog: { attributes: { add: [{ name: "team", expression: "jwt.team" }] }, otlp: { url: "http://collector" } },
    },
  },
};

export const backends: BackendFull = {
  tls: { certificateSource: "SPIFFE" },
  auth: { jwtSign: { signingKeyRef: { name: "key" }, claims: { deep: [1, null, { a: "b" }] } } },
  extAuth: { url: "http://guard", http: { path: "'/check'" } },
  health: { unhealthyCondition: "response.code >= 500", eviction: { consecutiveFailures: 3 } },
};

// @ts-expect-error a size is a number or text
export const sizeAsFlag: Traffic = { buffer: { request: { maxBytes: true } } };

// @ts-expect-error a version of TLS is text
export const versionAsNumber: Frontend = { tls: { minProtocolVersion: 1.3 } };

// @ts-expect-error a mode says what happens to CONNECT
export const connectWithoutMode: Frontend = { connect: {} };

// @ts-expect-error a provider has keys
export const providerWithoutKeys: Traffic = { jwtAuthentication: { providers: [{ issuer: "i" }] } };

// @ts-expect-error there is nothing to set
export const passthroughWithKey: BackendAuth = { passthrough: { key: "k" } };

// @ts-expect-error a credential has a place
export const credentialWithoutPlace: BackendAuth = { credentials: [{ secretRef: { name: "s" } }] };

// @ts-expect-error one target of an MCP backend has no checks of its own
export const simpleWithAuthorization: BackendSimple = { authorization: { policy: { matchExpressions: ["true"] } } };

// @ts-expect-error settings of a backend have no conditional form
export const conditionalBackend: BackendFull = { transformation: { conditional: [] } };

/** A member that is added to the schema stops the build at each switch over the members. */
export function wayOfAsking(policy: ExtAuthPolicy): string {
  const kind = kindOfExtAuthPolicy(policy);
  switch (kind) {
    case "grpc":
    case "http":
      // Whatever includes an endpoint can be asked where it is.
      return `${kind} ${kindOfPolicyEndpoint(policy)}`;
    default:
      return kind satisfies never;
  }
}

export function credential(auth: BackendAuth): string {
  const kind = kindOfBackendAuth(auth);
  switch (kind) {
    case "key":
    case "secretRef":
    case "passthrough":
    case "cloudA":
    case "cloudB":
    case "cloudC":
    case "oauthTokenExchange":
    case "crossAppAccess":
    case "jwtSign":
    case undefined:
      return kind ?? "credentials alone";
    default:
      return kind satisfies never;
  }
}

export function incompleteSources(users: BasicAuthentication, keys: Jwks): void {
  const source = kindOfBasicAuthentication(users);
  // @ts-expect-error users in a Secret are left
  if (source !== "users") source satisfies never;
  const place = kindOfJwks(keys);
  // @ts-expect-error a server that publishes keys is left
  if (place !== "inline") place satisfies never;
}
