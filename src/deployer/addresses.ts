/** Reads the addresses of a data plane from its Service. `deployer.ts` uses it. */
import type { KubeObject } from "../api/object.ts";

export interface ServiceAddress {
  readonly type: "IPAddress" | "Hostname";
  readonly value: string;
}

interface AddressedService extends KubeObject {
  readonly spec?: { readonly clusterIP?: string; readonly clusterIPs?: readonly string[] };
  readonly status?: {
    readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[] };
  };
}

/** Maximum number of addresses in the status of a Gateway (Gateway API). */
const MAX_ADDRESSES = 16;

/** Returns the addresses of a data plane: those of its load balancer, else its cluster IPs. */
export function addressesOf(service: KubeObject): ServiceAddress[] {
  const { spec, status } = service as AddressedService; // a Service by its kind
  const ingress = (status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }): ServiceAddress[] => {
    if (ip !== undefined && ip !== "") return [{ type: "IPAddress", value: ip }];
    return hostname === undefined || hostname === "" ? [] : [{ type: "Hostname", value: hostname }];
  });
  const inside = spec?.clusterIPs ?? (spec?.clusterIP === undefined ? [] : [spec.clusterIP]);
  const cluster = inside
    .filter((value) => value !== "" && value !== "None")
    .map((value): ServiceAddress => ({ type: "IPAddress", value }));
  return (ingress.length > 0 ? ingress : cluster).slice(0, MAX_ADDRESSES);
}
