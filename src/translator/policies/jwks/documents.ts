/**
 * Declares the JWKS documents to fetch for objects, with the addresses of their servers. The addresses are apart from
 * the requests, so that moving pods recompute no policy. `../../graph.ts` uses it.
 */
import type { EndpointSlice } from "../../../api/core.ts";
import type { Collection, Readable, ReadableIndex } from "../../../lib/collections/collection.ts";
import type { Graph, Read } from "../../../lib/collections/graph.ts";
import type { JwksRequest } from "../../../sources/remote/documents.ts";
import { addressesOf } from "../../backends/endpoints.ts";
import type { ServiceView } from "../../shared/views.ts";
import type { RemoteJwksRequest } from "../shared/remote-keys.ts";

export interface ServiceAddresses {
  readonly services: Readable<ServiceView>;
  readonly slicesByService: ReadableIndex<EndpointSlice>;
}

/** @returns the documents of each object that needs any */
export function declareDocuments<V extends { readonly remoteJwks: readonly RemoteJwksRequest[] }>(
  graph: Graph,
  name: string,
  objects: Collection<V>,
  { services, slicesByService }: ServiceAddresses,
): Collection<readonly JwksRequest[]> {
  const addresses = ({ server }: RemoteJwksRequest, read: Read): JwksRequest["addresses"] => {
    if ("host" in server) return [server];
    const service = read.get(services, server.service);
    const slices = read.byIndex(slicesByService, server.service).map(({ value }) => value);
    const found = service === undefined ? [] : addressesOf(service, server.portKey, slices);
    return found.map((address) => ({ ...address, unixPath: "" }));
  };
  return graph.derive(name, objects, (_key, { remoteJwks: requests }, read): readonly JwksRequest[] | undefined =>
    requests.length === 0
      ? undefined
      : requests.map((request): JwksRequest => {
          const { server: _server, ...wanted } = request;
          return { ...wanted, addresses: addresses(request, read) };
        }),
  );
}
