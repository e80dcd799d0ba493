/**
 * Defines the translator, which turns Kubernetes objects into the IR. `translate.ts` implements it.
 *
 * In: object events. Out: resources, diagnostics, and what changed since the last step. The translator is pure: it has
 * no clock, no socket and no log. A change recomputes only the values that read it (`src/lib/collections`).
 */
import type { DestinationScope } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { KubeObject, ObjectId } from "../api/object.ts";
import type { Resource, ResourceUpdate } from "../ir/resource.ts";
import type { JwksDocument, JwksRequest } from "../sources/remote/documents.ts";
import type { GrantMode } from "./references/backend-refs.ts";
import type { Diagnostic } from "./shared/diagnostics.ts";
import type { StatusInput } from "./shared/status-input.ts";
import type { DeploymentPlan } from "./gateways/deployment-plan.ts";

export type TranslatorEvent =
  | { readonly type: "set"; readonly object: KubeObject }
  | { readonly type: "delete"; readonly id: ObjectId }
  /** Admission rejected the object: its targets must answer 500 until it is corrected. */
  | { readonly type: "refused"; readonly id: ObjectId; readonly object: unknown; readonly reason: string }
  /** A requested document has been fetched, or could not be; `document` is undefined when it is no longer requested. */
  | { readonly type: "document"; readonly key: string; readonly document: JwksDocument | undefined };

export interface TranslatorOptions {
  readonly controllerName: string;
  /**
   * Name of a GatewayClass that exists without an object. Manifests from files have the class `gwproxy` in this way.
   */
  readonly implicitClass: string | undefined;
  /** Defaults to "route". */
  readonly grantMode?: GrantMode;
  /** Limits the addresses that static backends may lead to; unset for manifests from files. */
  readonly destinationScope?: DestinationScope;
  /** Serves InferencePools. Their endpoints are Pods, in files also EndpointSlices. Unset: they are not served. */
  readonly inferencePools?: InferencePoolMode;
}

export type InferencePoolMode = "pods" | "pods-and-slices";

/** Describes the changes of one batch of events. Empty lists mean that no resource changed. */
export interface TranslationStep {
  /** Changes of all Gateways together, for a data plane in the same process. */
  readonly update: ResourceUpdate;
  /** The same changes, for each Gateway ("namespace/name") whose data plane is affected. */
  readonly byGateway: ReadonlyMap<string, ResourceUpdate>;
  /** Objects whose diagnostics or attachments changed, so that their status has to be computed again. */
  readonly touched: readonly ObjectId[];
  /** Gateways ("namespace/name") whose deployment changed; undefined when the Gateway is no longer deployed. */
  readonly deploymentPlans: ReadonlyMap<string, DeploymentPlan | undefined>;
  /** All documents to fetch from other servers; undefined when the list did not change. */
  readonly documents: readonly JwksRequest[] | undefined;
}

export interface Translator {
  apply(events: readonly TranslatorEvent[]): TranslationStep;
  /** Returns every resource that the data plane of this Gateway should hold. */
  resourcesOf(gateway: string): readonly Resource[];
  resources(): readonly Resource[];
  resource(type: Resource["type"], key: string): Resource | undefined;
  gateways(): readonly string[];
  diagnostics(): readonly Diagnostic[];
  /** Returns the diagnostics of one object, including kinds whose status is empty. */
  diagnosticsOf(id: ObjectId): readonly Diagnostic[];
  /** Returns the input of the object's status; undefined when this controller does not write its status. */
  statusInput(id: ObjectId): StatusInput | undefined;
}
