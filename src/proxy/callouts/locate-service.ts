/**
 * Locates the services that callouts call: an ExternalService of the configuration names a Backend, whose endpoint is
 * picked for each call, or a fixed origin. `createCallouts` uses it.
 */
import { create } from "@bufbuild/protobuf";
import {
  BackendTlsSchema,
  type BackendTls,
  type ExternalService,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../exchange/errors.ts";
import { connectionOf, PLAIN, type UpstreamTarget } from "../upstream/dial/connection-settings.ts";
import type { CallTarget } from "../upstream/upstream.ts";
import { CalloutError, type Callout } from "./callout.ts";

/** Picks the endpoint of a Backend for the next call. @throws ProxyError backend_invalid, endpoint_unavailable */
export type PickCallTarget = (backendKey: string) => CallTarget;

/** A service whose endpoint is looked up for each call. */
export interface LocatedService extends Pick<Callout, "path" | "invalidReason"> {
  /** @throws CalloutError when there is none */
  find(): CallTarget;
}

export function locateService(service: ExternalService | undefined, pickCallTarget: PickCallTarget): LocatedService {
  const place = service?.place;
  return {
    path: place?.case === "origin" ? place.value.path : "",
    invalidReason: place?.case === undefined ? (service?.invalidReason ?? "no service") : undefined,
    find: finderOf(place, pickCallTarget),
  };
}

/** Adds TLS to targets that have none. A target stays one object, so that its channel is found by identity. */
export function withDefaultTls(service: LocatedService, tls: BackendTls | undefined): LocatedService {
  if (tls === undefined) return service;
  const secured = new WeakMap<UpstreamTarget, UpstreamTarget>();
  return {
    ...service,
    find() {
      const found = service.find();
      const { target } = found;
      if (target.tls !== undefined) return found;
      let other = secured.get(target);
      if (other === undefined) secured.set(target, (other = { ...target, ...connectionOf({ ...target, tls }) }));
      return { ...found, target: other };
    },
  };
}

/** @returns a function that picks the endpoint for the next call, and throws CalloutError when there is none */
function finderOf(place: ExternalService["place"] | undefined, pickCallTarget: PickCallTarget): () => CallTarget {
  switch (place?.case) {
    case "backend": {
      const key = place.value;
      return () => {
        try {
          return pickCallTarget(key);
        } catch (error) {
          if (!(error instanceof ProxyError)) throw error;
          const misconfigured = error.code !== "endpoint_unavailable";
          throw new CalloutError(`${key}: ${error.detail ?? error.message}`, { cause: error, misconfigured });
        }
      };
    }
    case "origin": {
      const { host, port, tls } = place.value;
      const connection = tls ? connectionOf({ tls: create(BackendTlsSchema) }) : PLAIN;
      const target = { ...connection, host, port, unixPath: "" };
      const found: CallTarget = {
        target,
        authority: authorityOf(host, port, tls),
        auth: undefined,
        http: undefined,
        begin: () => () => undefined,
      };
      return () => found;
    }
    case undefined:
      return () => {
        throw new CalloutError("the service could not be resolved", { misconfigured: true });
      };
  }
}

/** Omits the default port of the scheme (RFC 9110 §4.2). */
function authorityOf(host: string, port: number, tls: boolean): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === (tls ? 443 : 80) ? name : `${name}:${port}`;
}
