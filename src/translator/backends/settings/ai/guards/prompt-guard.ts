/** Translates `promptGuard` of an `ai` block: the guards of prompts and of answers, in order. */
import { create } from "@bufbuild/protobuf";
import type {
  GuardFields,
  GuardResponse as ApiResponse,
  PromptGuard,
  RequestGuard,
} from "../../../../../../generated/types/guardrails.ts";
import {
  GuardResponseSchema,
  GuardSchema,
  GuardScope,
  type Guard,
  type GuardResponse,
} from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { within, type Report } from "../../../../shared/report.ts";
import type { SettingsContext } from "../../context.ts";
import type { AiFields } from "../ai-field.ts";
import { translateKind } from "./index.ts";

type ApiScope = NonNullable<GuardFields["scope"]>[number];

const SCOPES: Readonly<Record<ApiScope, GuardScope>> = {
  SystemPrompt: GuardScope.SYSTEM_PROMPT,
  Messages: GuardScope.MESSAGES,
  ToolOutput: GuardScope.TOOL_OUTPUT,
  ToolInput: GuardScope.TOOL_INPUT,
};

const DEFAULT_SCOPE: readonly ApiScope[] = ["SystemPrompt", "Messages"];
const DEFAULT_STATUS = 403;

export function translatePromptGuard(
  { streaming, request = [], response = [] }: PromptGuard,
  context: SettingsContext,
  report: Report,
): AiFields {
  const guards = (list: readonly RequestGuard[], phase: "request" | "response"): Guard[] =>
    list.map((guard, at) => translateGuard(guard, phase, context, within(report, `${phase}[${at}]`)));
  return {
    promptGuard: {
      streaming: streaming === "Enabled",
      request: guards(request, "request"),
      response: guards(response, "response"),
    },
  };
}

function translateGuard(
  guard: RequestGuard,
  phase: "request" | "response",
  context: SettingsContext,
  report: Report,
): Guard {
  return create(GuardSchema, {
    ...translateKind(guard, context, report),
    scope: (guard.scope ?? DEFAULT_SCOPE).map((scope) => SCOPES[scope]),
    response: translateResponse(guard.response ?? {}, phase),
  });
}

function translateResponse(
  { message, statusCode, headers = [] }: ApiResponse,
  phase: "request" | "response",
): GuardResponse {
  return create(GuardResponseSchema, {
    message: message ?? `The ${phase} was rejected due to inappropriate content.`,
    status: statusCode ?? DEFAULT_STATUS,
    headers: headers.map(({ name, value }) => ({ name, value })),
  });
}
