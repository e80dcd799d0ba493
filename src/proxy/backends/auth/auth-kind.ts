/** The interface of a kind of authentication to a backend. index.ts has the table of kinds. */
import type { BackendAuth } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { PlaceCredential, SignRequest } from "../../upstream/auth.ts";

export type KindCase = NonNullable<BackendAuth["kind"]["case"]>;
type KindSpec<K extends KindCase> = Extract<BackendAuth["kind"], { case: K }>["value"];

export interface CompiledKind {
  /** Unset for a kind that places nothing. */
  readonly place?: PlaceCredential;
  /** Unset for a kind that does not sign. */
  readonly sign?: SignRequest;
}

export interface AuthKind<K extends KindCase> {
  /** Prepares what does not depend on a request. A mistake of the configuration makes every request fail instead. */
  compile(spec: KindSpec<K>): CompiledKind;
}
