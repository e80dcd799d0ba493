/**
 * Defines the status that an object should have, without timestamps and without entries of other controllers.
 * `compute.ts` produces it and `writer.ts` writes it. There are two forms, because the API has two kinds of list: keyed
 * lists are written with server-side apply, atomic ones are read, merged and replaced.
 */
import type { ObjectId } from "../api/object.ts";

export interface DesiredCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
}

export type DesiredStatus = { readonly id: ObjectId } & (
  | {
      /** For Gateway, GatewayClass and GwBackend: applied with the controller's field manager. */
      readonly form: "keyed";
      readonly conditions: readonly DesiredCondition[];
      /** Set for Gateways and ListenerSets. */
      readonly listeners?: readonly DesiredListener[];
      /** Set for a GatewayClass: feature names, sorted. */
      readonly supportedFeatures?: readonly string[];
      /** Set for a Gateway. */
      readonly attachedListenerSets?: number;
      readonly addresses?: readonly { readonly type: string; readonly value: string }[];
    }
  | {
      /**
       * For routes (`parents`, parentRef) and policies (`ancestors`, ancestorRef): atomic lists shared with other
       * controllers.
       */
      readonly form: "listed";
      readonly list: "parents" | "ancestors";
      readonly controllerName: string;
      /** Maximum length of the list for this kind, when it is lower than in the Gateway API. */
      readonly limit?: number;
      readonly entries: readonly DesiredEntry[];
    }
);

export interface DesiredListener {
  readonly name: string;
  readonly attachedRoutes: number;
  readonly supportedKinds: readonly { readonly group: string; readonly kind: string }[];
  readonly conditions: readonly DesiredCondition[];
}

export interface DesiredEntry {
  /** The parentRef or ancestorRef in the form in which it is written. */
  readonly ref: Readonly<Record<string, string | number>>;
  readonly conditions: readonly DesiredCondition[];
}
