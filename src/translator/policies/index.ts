/**
 * The table of unit translators: each entry produces one unit from `traffic` of a GwPolicy. `content.ts` runs them in
 * this order, which is the order of execution in the data plane, and the IR keeps it.
 */
import { apiKeyAuthentication } from "./api-key-authentication.ts";
import { authorization } from "./authorization.ts";
import { basicAuthentication } from "./basic-authentication.ts";
import { buffer } from "./buffer.ts";
import { cors } from "./cors.ts";
import { csrf } from "./csrf.ts";
import { delay } from "./delay.ts";
import { directResponse } from "./direct-response.ts";
import { extAuth } from "./ext-auth.ts";
import { extProc } from "./ext-proc.ts";
import { globalRateLimit } from "./global-rate-limit.ts";
import { headerModifiers } from "./header-modifiers.ts";
import { hostRewrite } from "./host-rewrite.ts";
import { jwtAuthentication } from "./jwt-authentication.ts";
import { localRateLimit } from "./local-rate-limit.ts";
import { retry } from "./retry.ts";
import { timeouts } from "./timeouts.ts";
import { transformation } from "./transformation.ts";
import type { Unit, UnitTranslator } from "./shared/unit.ts";

/** `failClosed` has no entry: no field leads to it, and fail-closed.ts makes the unit of a rejected policy. */
export const UNIT_TRANSLATORS: { readonly [Case in Exclude<Unit["case"], "failClosed">]: UnitTranslator } = {
  timeouts,
  cors,
  jwtAuthentication,
  basicAuthentication,
  apiKeyAuthentication,
  extAuth,
  authorization,
  retry,
  localRateLimit,
  globalRateLimit,
  buffer,
  extProc,
  transformation,
  csrf,
  headerModifiers,
  hostRewrite,
  delay,
  directResponse,
};
