/** Joins and compares the answers of several threads; WorkerPool uses it. */
import type { TaskList } from "../proxy.ts";
import type { ApplyResult, Resource, ResourceUpdate } from "../../ir/resource.ts";

export function nameOf({ type, key }: Pick<Resource, "type" | "key">): string {
  return `${type} ${key}`;
}

export function names({ refused }: ApplyResult): Set<string> {
  return new Set(refused.map(nameOf));
}

export function refuseAll({ set, removed }: ResourceUpdate): ApplyResult["refused"] {
  return [...set, ...removed].map(({ type, key }) => ({ type, key, reason: "no thread survived the change" }));
}

export function joinTasks(lists: readonly TaskList[]): TaskList {
  return { tasks: lists.flatMap(({ tasks }) => tasks), truncated: lists.some(({ truncated }) => truncated) };
}
