/**
 * The methods of the Agent2Agent protocol (A2A) in its three bindings: names in JSON-RPC, paths of HTTP+JSON, services of
 * gRPC. `classify.ts` finds the method of a request with it, and telemetry learns which names are bounded.
 */

/** Names in JSON-RPC of 0.3. */
const OLDER_NAMES = [
  "message/send",
  "message/stream",
  "tasks/get",
  "tasks/list",
  "tasks/cancel",
  "tasks/resubscribe",
  "tasks/pushNotificationConfig/set",
  "tasks/pushNotificationConfig/get",
  "tasks/pushNotificationConfig/list",
  "tasks/pushNotificationConfig/delete",
  "agent/getAuthenticatedExtendedCard",
];

/** Names in JSON-RPC and gRPC of 1.0; calls of the HTTP+JSON binding are recorded under them too. */
const NAMES = [
  "SendMessage",
  "SendStreamingMessage",
  "GetTask",
  "ListTasks",
  "CancelTask",
  "SubscribeToTask",
  "CreateTaskPushNotificationConfig",
  "GetTaskPushNotificationConfig",
  "ListTaskPushNotificationConfigs",
  "DeleteTaskPushNotificationConfig",
  "GetExtendedAgentCard",
];

/** Names that only gRPC of 0.3 has. */
const OLDER_GRPC_NAMES = ["TaskSubscription", "ListTaskPushNotificationConfig", "GetAgentCard"];

/** The names that metrics show; others are invented by clients. */
export const KNOWN_METHODS: ReadonlySet<string> = new Set([...OLDER_NAMES, ...NAMES, ...OLDER_GRPC_NAMES]);

/** Methods whose result is an agent card. */
export const CARD_METHODS: ReadonlySet<string> = new Set([
  "agent/getAuthenticatedExtendedCard",
  "GetExtendedAgentCard",
  "GetAgentCard",
]);

/** Matches the path of a gRPC call of 1.0 or 0.3. */
const GRPC_PATH = /\/(?:lf\.)?a2a\.v1\.A2AService\/([A-Za-z0-9_]{1,128})$/;

/** @returns undefined for another service */
export function methodOfGrpcPath(path: string): string | undefined {
  return GRPC_PATH.exec(path)?.[1];
}

interface PathMethod {
  readonly verbs: readonly string[];
  /** Ends the path; the interface of the agent, `/v1` of 0.3 and a tenant may stand before it. */
  readonly end: RegExp;
  readonly method: string;
}

/** Matches the colon before a custom verb (AIP-136), which some clients encode. */
const COLON = "(?::|%3[Aa])";
const TASK = "/tasks/[^/]+";

/** Operations of the HTTP+JSON binding. A more specific end stands before a more general one. */
const PATH_METHODS: readonly PathMethod[] = [
  { verbs: ["POST"], end: ending(`/message${COLON}send`), method: "SendMessage" },
  { verbs: ["POST"], end: ending(`/message${COLON}stream`), method: "SendStreamingMessage" },
  { verbs: ["POST"], end: ending(`${TASK}${COLON}cancel`), method: "CancelTask" },
  // 1.0 subscribes with GET, 0.3 with POST.
  { verbs: ["GET", "POST"], end: ending(`${TASK}${COLON}subscribe`), method: "SubscribeToTask" },
  { verbs: ["GET"], end: ending("/tasks"), method: "ListTasks" },
  { verbs: ["GET"], end: ending(TASK), method: "GetTask" },
  { verbs: ["POST"], end: ending(`${TASK}/pushNotificationConfigs`), method: "CreateTaskPushNotificationConfig" },
  { verbs: ["GET"], end: ending(`${TASK}/pushNotificationConfigs`), method: "ListTaskPushNotificationConfigs" },
  { verbs: ["GET"], end: ending(`${TASK}/pushNotificationConfigs/[^/]+`), method: "GetTaskPushNotificationConfig" },
  {
    verbs: ["DELETE"],
    end: ending(`${TASK}/pushNotificationConfigs/[^/]+`),
    method: "DeleteTaskPushNotificationConfig",
  },
  { verbs: ["GET"], end: ending("/extendedAgentCard"), method: "GetExtendedAgentCard" },
  { verbs: ["GET"], end: ending("/v1/card"), method: "GetExtendedAgentCard" },
];

function ending(pattern: string): RegExp {
  return new RegExp(`${pattern}$`);
}

/** An operation of the HTTP+JSON binding, and the path of the interface that it was called on. */
export interface PathCall {
  readonly method: string;
  /** Path before the operation. */
  readonly base: string;
}

/** @param path without the query @returns undefined for a path that is not of the binding */
export function methodOfPath(verb: string, path: string): PathCall | undefined {
  for (const { verbs, end, method } of PATH_METHODS) {
    const found = verbs.includes(verb) ? end.exec(path) : null;
    if (found !== null) return { method, base: path.slice(0, found.index) };
  }
  return undefined;
}
