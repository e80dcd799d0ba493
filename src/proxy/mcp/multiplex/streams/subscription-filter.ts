/**
 * What a client asks to be told of in `subscriptions/listen` (2026-07-28): flags for lists, which concern every target,
 * and resources and tasks, which concern their owners. `subscriptions.ts` uses it both ways: for the request of each
 * target, and for the acknowledgement to the client.
 */
import type { Message } from "../../message/message.ts";
import { eachElement, eachMember, findMember, readString, textOf, type Span } from "../../message/spans.ts";
import type { Target } from "../../targets/target.ts";
import { findOnly } from "../rewriting/items.ts";
import type { NamedTarget, OwnedName } from "../naming/names.ts";
import { parseUri, printUri } from "../naming/uris.ts";
import type { View } from "../naming/view.ts";

const MEMBER = "notifications";
const RESOURCES = "resourceSubscriptions";
const TASKS = "taskIds";

/** Names of one kind, as their targets name them, by the name of the target. */
type NamesByTarget = ReadonlyMap<string, readonly string[]>;

export interface SubscriptionFilter {
  /** JSON texts of the other members that are set, by name. */
  readonly flags: ReadonlyMap<string, string>;
  readonly resources: NamesByTarget;
  readonly tasks: NamesByTarget;
}

/** Position of the filter in a request or acknowledgement. @throws McpError when there are two */
export function findFilter({ bytes, payload }: Message): Span | undefined {
  return payload && findOnly(bytes, payload, MEMBER);
}

/** Reads the filter of a client. What it may not see is left out, like what does not exist. */
export function readFilter(message: Message, view: View<Target>): SubscriptionFilter {
  const span = findFilter(message);
  const { naming, allows } = view;
  const group = (member: string, kind: "resource" | "task", parse: (seen: string) => OwnedName<Target> | undefined) => {
    const names = new Map<string, string[]>();
    for (const seen of span === undefined ? [] : readTexts(message.bytes, span, member)) {
      const owned = parse(seen);
      if (owned === undefined || allows?.(kind, owned.target.name, owned.name) === false) continue;
      const group = names.get(owned.target.name) ?? [];
      names.set(owned.target.name, group);
      group.push(owned.name);
    }
    return names;
  };
  return {
    flags: span === undefined ? new Map() : readFlags(message.bytes, span),
    resources: group(RESOURCES, "resource", (seen) => parseUri(naming, seen)),
    tasks: group(TASKS, "task", (seen) => naming.parseId(seen)),
  };
}

/** Returns the filter with these resources of a target in place of its own. */
export function withResources(
  filter: SubscriptionFilter,
  { name }: NamedTarget,
  resources: readonly string[],
): SubscriptionFilter {
  const all = new Map(filter.resources);
  if (resources.length === 0) all.delete(name);
  else all.set(name, resources);
  return { ...filter, resources: all };
}

/** Whether anything in the filter is for a target. */
export function concerns({ flags, resources, tasks }: SubscriptionFilter, { name }: NamedTarget): boolean {
  return flags.size > 0 || resources.has(name) || tasks.has(name);
}

/** Prints what of a filter is for a target. */
export function printFilter({ flags, resources, tasks }: SubscriptionFilter, { name }: NamedTarget): string {
  return printMembers(flags, resources.get(name) ?? [], tasks.get(name) ?? []);
}

/** What targets have agreed to, as the client sees it. */
export class AgreedFilter {
  readonly #flags = new Map<string, string>();
  readonly #resources: string[] = [];
  readonly #tasks: string[] = [];

  /** The gateway itself announces changes of lists when targets come and go. */
  agree(flags: ReadonlyMap<string, string>): void {
    for (const [name, text] of flags) this.#flags.set(name, text);
  }

  /** Adds the acknowledgement of a target. @returns false when the target has agreed to nothing */
  add(message: Message, target: Target, { naming }: View<Target>): boolean {
    const { bytes } = message;
    const span = findFilter(message);
    if (span === undefined) return false;
    const flags = readFlags(bytes, span);
    const resources = readTexts(bytes, span, RESOURCES).map((uri) => printUri(target, uri));
    const tasks = readTexts(bytes, span, TASKS).map((id) => naming.idPrefix(target) + id);
    this.agree(flags);
    this.#resources.push(...resources);
    this.#tasks.push(...tasks);
    return flags.size + resources.length + tasks.length > 0;
  }

  print(): string {
    return printMembers(this.#flags, this.#resources, this.#tasks);
  }
}

function readFlags(bytes: Buffer, filter: Span): ReadonlyMap<string, string> {
  const flags = new Map<string, string>();
  for (const { name, value } of eachMember(bytes, filter)) {
    const key = readString(bytes, name) ?? "";
    const text = textOf(bytes, value);
    if (key !== RESOURCES && key !== TASKS && text !== "false" && text !== "null") flags.set(key, text);
  }
  return flags;
}

function readTexts(bytes: Buffer, filter: Span, member: string): string[] {
  const list = findMember(bytes, filter, member);
  if (list === undefined) return [];
  return [...eachElement(bytes, list)].flatMap((element) => readString(bytes, element) ?? []);
}

function printMembers(
  flags: ReadonlyMap<string, string>,
  resources: readonly string[],
  tasks: readonly string[],
): string {
  const members = [...flags].map(([name, text]) => `${JSON.stringify(name)}:${text}`);
  if (resources.length > 0) members.push(`"${RESOURCES}":${JSON.stringify(resources)}`);
  if (tasks.length > 0) members.push(`"${TASKS}":${JSON.stringify(tasks)}`);
  return `{${members.join(",")}}`;
}
