/**
 * The certificate that a Gateway shows to backends over TLS (Gateway API `spec.tls.backend`): a policy of the Gateway in
 * the middle language. One that cannot be read is not shown, and backends that ask for it refuse.
 */
import { create } from "@bufbuild/protobuf";
import type { Gateway } from "../../../generated/types/gateway-api/gateway.ts";
import {
  BackendSettingsSchema,
  ListenerTlsSchema,
  Phase,
  PolicySchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Reason } from "../../api/conditions.ts";
import { objectId } from "../../api/object.ts";
import { resourceOf } from "../../ir/encode.ts";
import { gatewayClientKey, gatewayKey } from "../../ir/keys.ts";
import type { Resource } from "../../ir/resource.ts";
import type { Fault } from "./gateway.ts";
import { CertificateReader, type TlsContext } from "./listener-tls.ts";
import { irRef } from "../references/refs.ts";

export interface GatewayClient {
  readonly fault: Fault | undefined;
  readonly resources: readonly Resource[];
}

/** @returns undefined for a Gateway that names none */
export function translateGatewayClient(gateway: Gateway, context: TlsContext): GatewayClient | undefined {
  const ref = gateway.spec.tls?.backend?.clientCertificateRef;
  if (ref === undefined) return undefined;
  const id = objectId(gateway);
  const found = create(ListenerTlsSchema);
  const fault = new CertificateReader(id, context).certificate([ref], found);
  if (fault !== undefined) {
    const isForbidden = fault.reason === Reason.RefNotPermitted;
    return { fault: isForbidden ? fault : { ...fault, reason: Reason.InvalidClientCertificateRef }, resources: [] };
  }
  const { certificatePem, privateKeyPem } = found;
  const message = create(PolicySchema, {
    key: gatewayClientKey(id.namespace, id.name),
    object: irRef(id),
    targets: [{ target: { case: "gateway", value: gatewayKey(id.namespace, id.name) } }],
    phase: Phase.POST_ROUTING,
    backend: create(BackendSettingsSchema, { clientCertificate: { certificatePem, privateKeyPem } }),
  });
  return { fault: undefined, resources: [resourceOf("Policy", message)] };
}

/** A listener lets clients in without a certificate that it trusts. */
export function admitsUnverifiedClients({ spec }: Gateway): boolean {
  const { default: common, perPort = [] } = spec.tls?.frontend ?? {};
  return [common, ...perPort.map(({ tls }) => tls)].some((tls) => tls?.validation?.mode === "AllowInsecureFallback");
}
