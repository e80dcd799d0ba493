/**
 * The table of MCP methods that the gateway knows: in which versions they exist, which targets they go to, and which
 * item their params name. The client side refuses what is not here; the multiplexer, authorization and guardrails go by
 * the row of a request.
 */

/** What lists hold and calls name; `authorization` decides by it. */
export type ItemKind = "tool" | "prompt" | "resource" | "template" | "task";

export interface Method {
  readonly name: string;
  /** Exists in the versions that open sessions with `initialize` (up to 2025-11-25). */
  readonly inSessions: boolean;
  /** Exists from 2026-07-28 on. */
  readonly inModern: boolean;
  /** Asks all targets and merges their answers, or the one target that owns the item. */
  readonly route: "fan-out" | "owner";
  /** Kind of the items of a list, or of the item of a call; undefined when the method concerns none. */
  readonly item: ItemKind | undefined;
  /** Path of the item's name or URI in the params; empty when the method names none, or in more than one way. */
  readonly named: readonly string[];
  /** Phases in which guardrails may check it. */
  readonly guards: "both" | "response";
}

const BOTH = { inSessions: true, inModern: true } as const;
const SESSIONS = { inSessions: true, inModern: false } as const;
const MODERN = { inSessions: false, inModern: true } as const;

type Row = Omit<Method, "name" | "named" | "guards"> & Partial<Pick<Method, "named" | "guards">>;

const ROWS: Readonly<Record<string, Row>> = {
  initialize: { ...SESSIONS, route: "fan-out", item: undefined },
  "server/discover": { ...MODERN, route: "fan-out", item: undefined },
  ping: { ...SESSIONS, route: "fan-out", item: undefined },
  "logging/setLevel": { ...SESSIONS, route: "fan-out", item: undefined },
  "tools/list": { ...BOTH, route: "fan-out", item: "tool" },
  "tools/call": { ...BOTH, route: "owner", item: "tool", named: ["name"] },
  "prompts/list": { ...BOTH, route: "fan-out", item: "prompt" },
  "prompts/get": { ...BOTH, route: "owner", item: "prompt", named: ["name"] },
  "resources/list": { ...BOTH, route: "fan-out", item: "resource" },
  "resources/templates/list": { ...BOTH, route: "fan-out", item: "template" },
  "resources/read": { ...BOTH, route: "owner", item: "resource", named: ["uri"] },
  "resources/subscribe": { ...SESSIONS, route: "owner", item: "resource", named: ["uri"], guards: "response" },
  "resources/unsubscribe": { ...SESSIONS, route: "owner", item: "resource", named: ["uri"], guards: "response" },
  "subscriptions/listen": { ...MODERN, route: "fan-out", item: undefined },
  // The reference is a prompt's name or a resource's URI.
  "completion/complete": { ...BOTH, route: "owner", item: undefined, guards: "response" },
  "tasks/list": { ...SESSIONS, route: "fan-out", item: "task" },
  "tasks/get": { ...BOTH, route: "owner", item: "task", named: ["taskId"] },
  "tasks/result": { ...SESSIONS, route: "owner", item: "task", named: ["taskId"] },
  "tasks/update": { ...MODERN, route: "owner", item: "task", named: ["taskId"] },
  "tasks/cancel": { ...BOTH, route: "owner", item: "task", named: ["taskId"] },
};

const METHODS: ReadonlyMap<string, Method> = new Map(
  Object.entries(ROWS).map(([name, row]) => [name, { named: [], guards: "both", ...row, name }]),
);

/** Returns the row of a method; undefined for one that the gateway does not know. */
export function findMethod(name: string): Method | undefined {
  return METHODS.get(name);
}

/** Notifications that clients send in some version. */
export const CLIENT_NOTIFICATIONS: ReadonlySet<string> = new Set(
  ["cancelled", "initialized", "progress", "roots/list_changed", "tasks/status"].map((name) => `notifications/${name}`),
);
