/**
 * What the status of an object should say, free of clocks and of other controllers' entries. Two forms, because the
 * API has two kinds of list: keyed ones are applied server-side, atomic ones are read, merged and replaced.
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
      /** Gateway, GatewayClass, GwBackend: applied with our field manager. */
      readonly form: "keyed";
      readonly conditions: readonly DesiredCondition[];
      /** Gateway only. */
      readonly listeners?: readonly DesiredListener[];
      /** GatewayClass only: names, sorted. */
      readonly supportedFeatures?: readonly string[];
      /** Gateway only. */
      readonly attachedListenerSets?: number;
      readonly addresses?: readonly { readonly type: string; readonly value: string }[];
    }
  | {
      /** Routes (`parents`, parentRef) and policies (`ancestors`, ancestorRef): atomic lists shared with other controllers. */
      readonly form: "listed";
      readonly list: "parents" | "ancestors";
      readonly controllerName: string;
      /** Most entries that the list of this kind takes, when fewer than in the Gateway API. */
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
  /** parentRef or ancestorRef as it will be written. */
  readonly ref: Readonly<Record<string, string | number>>;
  readonly conditions: readonly DesiredCondition[];
}
