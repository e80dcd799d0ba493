/**
 * What a client may see of a virtual server during one request, and under which names. The rewriting of lists, results
 * and messages of targets (`lists.ts`, `results.ts`, `server-messages.ts`) goes by it.
 */
import type { ItemKind } from "../../methods.ts";
import type { Naming, NamedTarget } from "./names.ts";

/** Decides whether the caller may see and use an item. @param name as the target names it */
export type Allows = (kind: ItemKind, target: string, name: string) => boolean;

export interface View<T extends NamedTarget = NamedTarget> {
  readonly naming: Naming<T>;
  /** undefined when no rule is configured: everything is allowed then. */
  readonly allows: Allows | undefined;
  /** From 2026-07-28 on. */
  readonly isModern: boolean;
}
