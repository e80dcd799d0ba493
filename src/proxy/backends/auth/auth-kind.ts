/** The interface of a kind of authentication to a backend. index.ts has the table of kinds. */
import type { BackendAuth } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { CelPhase } from "../../../cel/environments/phases.ts";
import type { Expression } from "../../../cel/expression.ts";
import type { Logger } from "../../../lib/log.ts";
import type { Callouts } from "../../callouts/callouts.ts";
import type { Environment } from "./shared/ambient-hosts.ts";
import type { CloudClient } from "./shared/cloud-client.ts";
import type { Tokens } from "../../tokens/tokens.ts";
import type { PlaceCredential, RequestAuth, SignRequest } from "../../upstream/auth.ts";

export type KindCase = NonNullable<BackendAuth["kind"]["case"]>;
type KindSpec<K extends KindCase> = Extract<BackendAuth["kind"], { case: K }>["value"];

/** Services of the process that kinds may use. */
export interface AuthDeps {
  readonly tokens: Pick<Tokens, "cache">;
  /** Opens token endpoints and metadata servers. */
  readonly callouts: () => Pick<Callouts, "open" | "openTarget">;
  /** Compiles an expression; one that does not compile becomes one that always fails. */
  readonly expression: (source: string, phase: CelPhase) => Expression;
  readonly log: Logger;
  /** Variables of the environment that ambient identities come from. */
  readonly environment: Environment;
}

/** What a block of the configuration is compiled with. */
export interface BlockDeps extends AuthDeps {
  /** The object and the field where the block stands, for reports. */
  readonly place: string;
  /** Digest of the block and its place. */
  readonly block: string;
  /** Calls services of clouds. */
  readonly cloud: CloudClient;
}

export interface CompiledKind {
  /** Unset for a kind that places nothing. */
  readonly place?: PlaceCredential;
  /** Unset for a kind that does not sign. */
  readonly sign?: SignRequest;
  readonly correctClock?: RequestAuth["correctClock"];
  /** Unset for a kind whose credential the author of the block supplied. */
  readonly checkDestination?: RequestAuth["checkDestination"];
}

export interface AuthKind<K extends KindCase> {
  /** Prepares what does not depend on a request. A mistake of the configuration makes every request fail instead. */
  compile(spec: KindSpec<K>, deps: BlockDeps): CompiledKind;
}
