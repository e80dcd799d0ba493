/**
 * Defines the resource, which is the unit of xDS and of every store: one IR message with its key, and a version derived
 * from its bytes. In: messages of ir.proto. Out: resources that can be compared, sent and compiled. Their meaning is
 * defined by the modules that produce and compile them.
 */
import type {
  Backend,
  Bind,
  Endpoints,
  HttpRoute,
  Listener,
  Model,
  ModelCatalogSource,
  Policy,
  TcpRoute,
} from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";

export interface ResourceMessages {
  Bind: Bind;
  Listener: Listener;
  HttpRoute: HttpRoute;
  TcpRoute: TcpRoute;
  Backend: Backend;
  Endpoints: Endpoints;
  Model: Model;
  Policy: Policy;
  ModelCatalogSource: ModelCatalogSource;
}

export type ResourceType = keyof ResourceMessages;

export type Resource = {
  readonly [T in ResourceType]: {
    readonly type: T;
    readonly key: string;
    /** Changes exactly when the encoded message does. */
    readonly version: string;
    readonly message: ResourceMessages[T];
  };
}[ResourceType];

/** Describes one step from one state to the next. A key appears in at most one of the two lists. */
export interface ResourceUpdate {
  readonly set: readonly Resource[];
  readonly removed: readonly { readonly type: ResourceType; readonly key: string }[];
}

/** The answer of a data plane to an update; an empty list is an ACK. */
export interface ApplyResult {
  readonly refused: readonly { readonly type: ResourceType; readonly key: string; readonly reason: string }[];
}
