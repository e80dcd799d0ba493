/** What translators read the keys of an issuer with. `../jwks/remote-jwks.ts` implements it. */
import type { RemoteJwks } from "../../../../generated/types/traffic-authentication.ts";
import type { JwtKey } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { DocumentAddress, JwksRequest } from "../../../sources/remote/documents.ts";

/**
 * The request of an object for a JWKS. The addresses of the server are added later (`../jwks/documents.ts`), so that
 * moving pods do not translate the object again.
 */
export interface RemoteJwksRequest extends Omit<JwksRequest, "addresses"> {
  /** A fixed address, or the port of a Service. */
  readonly server: DocumentAddress | { readonly service: string; readonly portKey: string };
}

export interface RemoteKeys {
  /** The requests for everything that was read so far. */
  readonly requests: readonly RemoteJwksRequest[];
  /** @returns the keys, or why there are none */
  keys(remote: RemoteJwks): readonly JwtKey[] | string;
}
