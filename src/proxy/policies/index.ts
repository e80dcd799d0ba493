/** The table of policies: the pipeline composes it in the order of `pipeline/order.ts`. A missing entry does not compile. */
import type {
  ApiKeyAuthentication,
  Authorization,
  Cors,
  Csrf,
  DirectResponseChoice,
  HeaderModifiers,
  LocalRateLimit,
  Refusal,
  Timeouts,
  TransformationChoice,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { PolicyName } from "../pipeline/order.ts";
import { apiKeyAuthentication } from "./api-key-authentication.ts";
import { authorization } from "./authorization.ts";
import { cors } from "./cors.ts";
import { csrf } from "./csrf.ts";
import { directResponse } from "./direct-response.ts";
import { headerModifiers } from "./header-modifiers.ts";
import { localRateLimit } from "./local-rate-limit.ts";
import type { Policy } from "./policy.ts";
import { refusal } from "./refusal.ts";
import { timeouts } from "./timeouts.ts";
import { transformation } from "./transformation.ts";

/** What each policy is compiled from, once all levels are merged. */
export interface PolicySpecs {
  refusal: Refusal;
  timeouts: Timeouts;
  cors: Cors;
  "api-key-authentication": ApiKeyAuthentication;
  /** The rules of all levels together. */
  authorization: Authorization;
  "local-rate-limit": LocalRateLimit;
  transformation: TransformationChoice;
  csrf: Csrf;
  "header-modifiers": HeaderModifiers;
  "direct-response": DirectResponseChoice;
}

export const POLICIES: { readonly [Name in PolicyName]: Policy<PolicySpecs[Name]> } = {
  refusal,
  timeouts,
  cors,
  "api-key-authentication": apiKeyAuthentication,
  authorization,
  "local-rate-limit": localRateLimit,
  transformation,
  csrf,
  "header-modifiers": headerModifiers,
  "direct-response": directResponse,
};
