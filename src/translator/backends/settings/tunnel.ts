/**
 * Translates `tunnel` of a backend block: the proxy that connections go through. `settings.ts` uses it. A proxy that
 * cannot be found blocks all connections.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendTunnel as ApiTunnel } from "../../../../generated/types/backend-policies.ts";
import { BackendTunnelSchema, type BackendTunnel } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ServiceReader } from "../../policies/shared/external-service.ts";
import type { Report } from "../../shared/report.ts";

/** @param report takes paths relative to the block */
export function translateTunnel(
  { mode, ...endpoint }: ApiTunnel,
  services: ServiceReader,
  report: Report,
): BackendTunnel {
  return create(BackendTunnelSchema, {
    proxy: services.resolve(endpoint, "", report),
    alwaysTunnels: mode === "Connect",
  });
}
