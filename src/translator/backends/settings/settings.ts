/**
 * Translates the backend block of a GwBackend, an LLM provider or a GwPolicy, with one translator per member. A
 * reference that cannot be resolved is reported and translated to its failing form; the caller decides whether to send
 * the result.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendFull } from "../../../../generated/types/backend-policies.ts";
import { BackendSettingsSchema, type BackendSettings } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { translateAuthorization } from "../../policies/shared/authorization.ts";
import { phaseOfBackend } from "../../policies/shared/expression-phase.ts";
import { translateExtAuth } from "../../policies/shared/ext-auth.ts";
import { within, type Report } from "../../shared/report.ts";
import { translateAi } from "./ai/index.ts";
import { translateConnection } from "./connection.ts";
import type { FullSettingsContext } from "./context.ts";
import { translateHealth } from "./health.ts";
import { translateMcpPolicy } from "./mcp/index.ts";
import { translateSessionAffinity } from "./session-affinity.ts";
import { translateBackendTransformation } from "./transformation.ts";

/** The members that are supported here; every kind of backend block has them. */
export type ServedBlock = Pick<
  BackendFull,
  | "tcp"
  | "tls"
  | "http"
  | "tunnel"
  | "auth"
  | "authorization"
  | "extAuth"
  | "ai"
  | "transformation"
  | "health"
  | "sessionAffinity"
  | "mcp"
>;

/** @returns undefined when the block sets no supported member */
export function translateSettings(
  block: ServedBlock | undefined,
  context: FullSettingsContext,
  report: Report,
): BackendSettings | undefined {
  if (block === undefined) return undefined;
  const { authorization, extAuth, ai, transformation, health, sessionAffinity, mcp } = block;
  const policy = ai === undefined ? undefined : translateAi(ai, context, within(report, "ai"));
  const members = {
    ...translateConnection(block, context, report),
    ...(authorization === undefined
      ? {}
      : { authorization: translateAuthorization(authorization, "authorization", { report }, "backend") }),
    ...(extAuth === undefined
      ? {}
      : {
          extAuth: translateExtAuth(extAuth, "extAuth", { report, services: context.services }, phaseOfBackend),
        }),
    ...(policy === undefined ? {} : { ai: policy }),
    ...(transformation === undefined
      ? {}
      : { transformation: translateBackendTransformation(transformation, within(report, "transformation")) }),
    ...(health === undefined ? {} : { health: translateHealth(health, within(report, "health")) }),
    ...(sessionAffinity === undefined
      ? {}
      : { sessionAffinity: translateSessionAffinity(sessionAffinity, within(report, "sessionAffinity")) }),
    ...(mcp === undefined ? {} : { mcp: translateMcpPolicy(mcp, context, within(report, "mcp")) }),
  };
  return Object.keys(members).length === 0 ? undefined : create(BackendSettingsSchema, members);
}
