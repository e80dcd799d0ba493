/**
 * Compiles `tunnel` settings into forward proxies, through which `Dial` makes connections. The proxy's own settings
 * decide how it is reached and with which credential; a proxy in front of the proxy is ignored.
 */
import { create, toJsonString } from "@bufbuild/protobuf";
import {
  BackendTlsSchema,
  BackendTunnelSchema,
  type BackendTunnel,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../lib/header-list.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { RequestAuth } from "../upstream/auth.ts";
import { placeCredential } from "./auth/shared/place-credential.ts";
import { connectionOf, PLAIN, type ForwardProxy, type ResolvedProxy } from "../upstream/dial/connection-settings.ts";
import type { CallTarget } from "../upstream/upstream.ts";

type PickCallTarget = (backendKey: string) => CallTarget;

export class Tunnels {
  readonly #pickCallTarget: PickCallTarget;
  readonly #known = new WeakMap<BackendTunnel, ForwardProxy>();

  /**
   * @param pickCallTarget picks an endpoint of the proxy's backend
   * @throws ProxyError backend_invalid, endpoint_unavailable, policy_refused
   */
  constructor(pickCallTarget: PickCallTarget) {
    this.#pickCallTarget = pickCallTarget;
  }

  /** Returns the same object for the same block, so that pools are shared. */
  of(tunnel: BackendTunnel | undefined): ForwardProxy | undefined {
    if (tunnel === undefined) return undefined;
    let proxy = this.#known.get(tunnel);
    if (proxy === undefined) this.#known.set(tunnel, (proxy = new TunnelProxy(tunnel, this.#pickCallTarget)));
    return proxy;
  }
}

class TunnelProxy implements ForwardProxy {
  readonly key: string;
  readonly alwaysTunnels: boolean;
  readonly #resolve: () => ResolvedProxy;

  constructor(tunnel: BackendTunnel, pickCallTarget: PickCallTarget) {
    this.key = toJsonString(BackendTunnelSchema, tunnel);
    this.alwaysTunnels = tunnel.alwaysTunnels;
    this.#resolve = compileProxy(tunnel, pickCallTarget);
  }

  resolve(): ResolvedProxy {
    return this.#resolve();
  }
}

function compileProxy({ proxy }: BackendTunnel, pickCallTarget: PickCallTarget): () => ResolvedProxy {
  const { place, invalidReason = "no proxy" } = proxy ?? {};
  switch (place?.case) {
    case "backend": {
      const key = place.value;
      return () => {
        const { target, auth, begin } = pickCallTarget(key);
        return { target: { ...target, proxy: undefined }, authorization: authorizationOf(auth), begin };
      };
    }
    case "origin": {
      const { host, port, tls } = place.value;
      const connection = tls ? connectionOf({ tls: create(BackendTlsSchema) }) : PLAIN;
      const resolved: ResolvedProxy = {
        target: { ...connection, host, port, unixPath: "" },
        authorization: undefined,
        begin: () => () => undefined,
      };
      return () => resolved;
    }
    case undefined:
      return () => {
        throw new ProxyError("backend_invalid", { detail: `tunnel: ${invalidReason}` });
      };
  }
}

/**
 * Returns the value of Proxy-Authorization: the credential, with the prefix of the header that it is configured for.
 */
function authorizationOf(auth: RequestAuth | undefined): string | undefined {
  if (auth === undefined) return undefined;
  const { kind, credentials } = auth.message;
  if (kind.case === "unresolved") throw new ProxyError("credential_unavailable", { detail: kind.value.reason });
  if (kind.case !== "key" || credentials.length > 0)
    throw new ProxyError("backend_invalid", { detail: "a proxy takes one credential, of the kind key or secretRef" });
  const location = kind.value.location?.location;
  if (location !== undefined && location.case !== undefined && location.case !== "header")
    throw new ProxyError("backend_invalid", { detail: `a proxy takes no credential in a ${location.case}` });
  const headers = new HeaderList();
  placeCredential(kind.value, headers, "/");
  return headers.raw[1];
}
