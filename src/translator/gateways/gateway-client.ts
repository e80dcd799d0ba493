/**
 * Translates the client certificate that a Gateway presents to backends (Gateway API `spec.tls.backend`, GEP-3155) into
 * a policy in the IR. `gateway.ts` uses it. A certificate that cannot be read is not presented, and backends that
 * require one refuse the connection.
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
import type { ConditionError } from "../shared/views.ts";
import { CertificateReader, type TlsContext } from "./listener-tls.ts";
import { irRef } from "../references/refs.ts";

export interface GatewayClient {
  readonly error: ConditionError | undefined;
  readonly resources: readonly Resource[];
}

/** @returns undefined for a Gateway that names no client certificate */
export function translateGatewayClient(gateway: Gateway, context: TlsContext): GatewayClient | undefined {
  const ref = gateway.spec.tls?.backend?.clientCertificateRef;
  if (ref === undefined) return undefined;
  const id = objectId(gateway);
  const found = create(ListenerTlsSchema);
  const error = new CertificateReader(id, context).certificate([ref], found);
  if (error !== undefined) {
    const isForbidden = error.reason === Reason.RefNotPermitted;
    return { error: isForbidden ? error : { ...error, reason: Reason.InvalidClientCertificateRef }, resources: [] };
  }
  const { certificatePem, privateKeyPem } = found;
  const message = create(PolicySchema, {
    key: gatewayClientKey(id.namespace, id.name),
    object: irRef(id),
    targets: [{ target: { case: "gateway", value: gatewayKey(id.namespace, id.name) } }],
    phase: Phase.POST_ROUTING,
    backend: create(BackendSettingsSchema, { clientCertificate: { certificatePem, privateKeyPem } }),
  });
  return { error: undefined, resources: [resourceOf("Policy", message)] };
}

/** Reports whether any listener admits clients without a certificate that it trusts (`AllowInsecureFallback`). */
export function admitsUnverifiedClients({ spec }: Gateway): boolean {
  const { default: common, perPort = [] } = spec.tls?.frontend ?? {};
  return [common, ...perPort.map(({ tls }) => tls)].some((tls) => tls?.validation?.mode === "AllowInsecureFallback");
}
