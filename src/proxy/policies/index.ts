/**
 * The table of policies in execution order. The pipeline composes chains from top to bottom, the data plane finds the
 * policy of a unit in it, and docs/reference/order.md is generated from it. A unit of the Policy resource without an
 * entry does not compile.
 */
import type { TrafficUnit } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { apiKeyAuthentication } from "./api-key-authentication.ts";
import { authorization } from "./authorization.ts";
import { basicAuthentication } from "./basic-authentication.ts";
import { buffer } from "./buffer.ts";
import { cors } from "./cors.ts";
import { csrf } from "./csrf.ts";
import { delay } from "./delay.ts";
import { directResponse } from "./direct-response.ts";
import { extAuth } from "./ext-auth/ext-auth.ts";
import { extProc } from "./ext-proc/ext-proc.ts";
import { globalRateLimit } from "./global-rate-limit/global-rate-limit.ts";
import { headerModifiers } from "./header-modifiers.ts";
import { hostRewrite } from "./host-rewrite.ts";
import { jwtAuthentication } from "./jwt-authentication/jwt-authentication.ts";
import { localRateLimit } from "./local-rate-limit.ts";
import { failClosed } from "./fail-closed.ts";
import { responseBuffer } from "./response-buffer.ts";
import { retry } from "./retry.ts";
import { timeouts } from "./timeouts.ts";
import { transformation } from "./transformation.ts";
import type { Policy } from "./policy.ts";

export type Unit = TrafficUnit["unit"];
/** A unit that this version implements. */
export type KnownUnit = Extract<Unit, { case: string }>;

/** Maps each unit to its message. */
type UnitMessages = { readonly [U in KnownUnit as U["case"]]: U["value"] };

/**
 * Maps each entry to the message it is compiled from. A unit that runs at two positions of the order has two entries.
 */
export type PolicyMessages = UnitMessages & { readonly responseBuffer: UnitMessages["buffer"] };
export type PolicyName = keyof PolicyMessages;

export interface PolicyEntry<Message> {
  readonly policy: Policy<Message>;
  /** Why the policy runs at this position; printed in the reference page. */
  readonly why: string;
}

export const POLICIES: { readonly [Name in PolicyName]: PolicyEntry<PolicyMessages[Name]> } = {
  failClosed: {
    policy: failClosed,
    why: "a policy that could not be read closes what it governs before anything else runs",
  },
  timeouts: {
    policy: timeouts,
    why: "the deadline counts from arrival, so every later step runs under it",
  },
  cors: {
    policy: cors,
    why: "preflights carry no credentials, and a browser must be able to read a rejection",
  },
  jwtAuthentication: {
    policy: jwtAuthentication,
    why: "who is calling must be known before anything is decided by it",
  },
  basicAuthentication: {
    policy: basicAuthentication,
    why: "the kinds of credentials are independent: all that are set must pass",
  },
  apiKeyAuthentication: {
    policy: apiKeyAuthentication,
    why: "the last way to say who is calling",
  },
  extAuth: {
    policy: extAuth,
    why: "the service outside judges who was authenticated, and what it says counts for the rules",
  },
  authorization: {
    policy: authorization,
    why: "decides by the identity that authentication established",
  },
  retry: {
    policy: retry,
    why: "its precondition sees the request as it was let in",
  },
  localRateLimit: {
    policy: localRateLimit,
    why: "counts only calls that were let in",
  },
  globalRateLimit: {
    policy: globalRateLimit,
    why: "asks outside only for what the replica's own limits let through",
  },
  buffer: {
    policy: buffer,
    why: "only what was let in is worth holding, and whoever reads the body comes later",
  },
  extProc: {
    policy: extProc,
    why: "a processor sees what was let in, and its work can be transformed further",
  },
  transformation: {
    policy: transformation,
    why: "rewrites what is sent after all decisions on what was received",
  },
  csrf: {
    policy: csrf,
    why: "only a request that may go on is worth the question where it came from",
  },
  responseBuffer: {
    policy: responseBuffer,
    why: "an answer is measured as the backend sent it, before it is transformed",
  },
  headerModifiers: {
    policy: headerModifiers,
    why: "literal edits have the last word over computed ones",
  },
  hostRewrite: {
    policy: hostRewrite,
    why: "a rewrite of the route, which follows, is more specific",
  },
  delay: {
    policy: delay,
    why: "only what will be answered is held back",
  },
  directResponse: {
    policy: directResponse,
    why: "last, so that limits and authentication count for it too",
  },
};

/** Policy names in execution order. The cast is sound because the table has no other keys. */
export const REQUEST_ORDER: readonly PolicyName[] = Object.keys(POLICIES) as PolicyName[];
