/**
 * The table of translators: which of them owns which unit of `traffic`. The order is that of execution, as in the data plane;
 * the IR keeps it.
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

/** A policy that admission refused has no field of its own: refusal.ts makes its unit. */
export const UNIT_TRANSLATORS: { readonly [Case in Exclude<Unit["case"], "refusal">]: UnitTranslator } = {
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
