/** The table of policies: the pipeline composes it in the order of `pipeline/order.ts`. A missing entry does not compile. */
import type {
  ApiKeyAuthentication,
  Authorization,
  BasicAuthentication,
  Cors,
  Csrf,
  BodyBuffers,
  Delay,
  DirectResponseChoice,
  ExtAuthChoice,
  ExtProcChoice,
  GlobalRateLimit,
  HeaderModifiers,
  HostRewrite,
  JwtAuthentication,
  LocalRateLimit,
  Refusal,
  Retry,
  Timeouts,
  TransformationChoice,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { PolicyName } from "../pipeline/order.ts";
import { apiKeyAuthentication } from "./api-key-authentication.ts";
import { authorization } from "./authorization.ts";
import { basicAuthentication } from "./basic-authentication.ts";
import { cors } from "./cors.ts";
import { csrf } from "./csrf.ts";
import { buffer } from "./buffer.ts";
import { delay } from "./delay.ts";
import { directResponse } from "./direct-response.ts";
import { extAuth } from "./ext-auth.ts";
import { extProc } from "./ext-proc.ts";
import { globalRateLimit } from "./global-rate-limit.ts";
import { headerModifiers } from "./header-modifiers.ts";
import { hostRewrite } from "./host-rewrite.ts";
import { jwtAuthentication } from "./jwt-authentication.ts";
import { localRateLimit } from "./local-rate-limit.ts";
import type { Policy } from "./policy.ts";
import { refusal } from "./refusal.ts";
import { responseBuffer } from "./response-buffer.ts";
import { retry } from "./retry.ts";
import { timeouts } from "./timeouts.ts";
import { transformation } from "./transformation.ts";

/** What each policy is compiled from, once all levels are merged. */
export interface PolicySpecs {
  refusal: Refusal;
  timeouts: Timeouts;
  cors: Cors;
  "jwt-authentication": JwtAuthentication;
  "basic-authentication": BasicAuthentication;
  "api-key-authentication": ApiKeyAuthentication;
  "ext-auth": ExtAuthChoice;
  /** The rules of all levels together. */
  authorization: Authorization;
  retry: Retry;
  "local-rate-limit": LocalRateLimit;
  "global-rate-limit": GlobalRateLimit;
  buffer: BodyBuffers;
  "ext-proc": ExtProcChoice;
  transformation: TransformationChoice;
  csrf: Csrf;
  /** The other half of `buffer`, of the same unit. */
  "response-buffer": BodyBuffers;
  "header-modifiers": HeaderModifiers;
  "host-rewrite": HostRewrite;
  delay: Delay;
  "direct-response": DirectResponseChoice;
}

export const POLICIES: { readonly [Name in PolicyName]: Policy<PolicySpecs[Name]> } = {
  refusal,
  timeouts,
  cors,
  "jwt-authentication": jwtAuthentication,
  "basic-authentication": basicAuthentication,
  "api-key-authentication": apiKeyAuthentication,
  "ext-auth": extAuth,
  authorization,
  retry,
  "local-rate-limit": localRateLimit,
  "global-rate-limit": globalRateLimit,
  buffer,
  "ext-proc": extProc,
  transformation,
  csrf,
  "response-buffer": responseBuffer,
  "header-modifiers": headerModifiers,
  "host-rewrite": hostRewrite,
  delay,
  "direct-response": directResponse,
};
