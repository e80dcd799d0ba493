/**
 * Turns objects into the middle language. In: object events. Out: resources, diagnostics and what changed since the
 * last step. Pure: no clock, no socket, no log. A change recomputes only what read it (src/lib/collections).
 */
import type { Reach } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { KubeObject, ObjectId } from "../api/object.ts";
import type { Resource, ResourceUpdate } from "../ir/resource.ts";
import type { JwksDocument, JwksRequest } from "../sources/remote/documents.ts";
import type { GrantMode } from "./references/backend-refs.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { StatusInput } from "./status-input.ts";
import type { DeploymentPlan } from "./gateways/deployment-plan.ts";

export type TranslatorEvent =
  | { readonly type: "set"; readonly object: KubeObject }
  | { readonly type: "delete"; readonly id: ObjectId }
  /** The object was refused by admission: what it targets must answer 500 until it is mended. */
  | { readonly type: "refused"; readonly id: ObjectId; readonly object: unknown; readonly reason: string }
  /** Something that was wanted has been fetched, or could not be; undefined when it is no longer wanted. */
  | { readonly type: "document"; readonly key: string; readonly document: JwksDocument | undefined };

export interface TranslatorOptions {
  readonly controllerName: string;
  /** Files: the class `gwproxy` exists without an object. */
  readonly implicitClass: string | undefined;
  /** Default: route. */
  readonly grantMode?: GrantMode;
  /** Of static backends. Default: that of files. */
  readonly reach?: Reach;
}

/** What one batch of events changed. Empty lists mean that nothing on the wire moved. */
export interface TranslationStep {
  /** Every Gateway together, for a data plane in the same process. */
  readonly update: ResourceUpdate;
  /** The same change, for each Gateway ("namespace/name") whose data plane must hear of it. */
  readonly byGateway: ReadonlyMap<string, ResourceUpdate>;
  /** Objects whose diagnostics or attachment changed: their status has to be computed again. */
  readonly touched: readonly ObjectId[];
  /** Gateways ("namespace/name") that are to be deployed in another way, or no longer. */
  readonly placements: ReadonlyMap<string, DeploymentPlan | undefined>;
  /** Everything that has to be fetched from other servers; undefined when that did not change. */
  readonly documents: readonly JwksRequest[] | undefined;
}

export interface Translator {
  apply(events: readonly TranslatorEvent[]): TranslationStep;
  /** Everything a data plane of this Gateway should hold. */
  resourcesOf(gateway: string): readonly Resource[];
  resources(): readonly Resource[];
  resource(type: Resource["type"], key: string): Resource | undefined;
  gateways(): readonly string[];
  diagnostics(): readonly Diagnostic[];
  /** Those of one object; for kinds whose status is not ours to write, or empty. */
  diagnosticsOf(id: ObjectId): readonly Diagnostic[];
  /** What the status of an object is computed from; undefined when its status is not ours to write. */
  facts(id: ObjectId): StatusInput | undefined;
}
