import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { RequestGuard, ResponseGuard } from "../../../../generated/types/guardrails.ts";
import {
  BuiltinPattern,
  ExternalServiceSchema,
  GuardAction,
  GuardScope,
  RouteType,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import * as bodyFields from "../../../../src/translator/backends/settings/ai/body-fields.ts";
import { translateBedrockGuardrails } from "../../../../src/translator/backends/settings/ai/guards/guardrails-a.ts";
import { translateModelArmor } from "../../../../src/translator/backends/settings/ai/guards/guardrails-b.ts";
import { translateModeration } from "../../../../src/translator/backends/settings/ai/guards/moderation.ts";
import { translatePromptGuard } from "../../../../src/translator/backends/settings/ai/guards/prompt-guard.ts";
import { translateRegex } from "../../../../src/translator/backends/settings/ai/guards/regex.ts";
import { translateWebhook } from "../../../../src/translator/backends/settings/ai/guards/webhook.ts";
import { translateModelAliases } from "../../../../src/translator/backends/settings/ai/model-aliases.ts";
import { translatePrompt } from "../../../../src/translator/backends/settings/ai/prompt.ts";
import { translatePromptCaching } from "../../../../src/translator/backends/settings/ai/prompt-caching.ts";
import { translateRoutes } from "../../../../src/translator/backends/settings/ai/routes.ts";
import type { SettingsContext } from "../../../../src/translator/backends/settings/context.ts";

const FOUND = create(ExternalServiceSchema, { place: { case: "backend", value: "service/default/guard:80" } });

/** Resolves every Service, and the Secret `key` alone. */
const context = {
  secrets: {
    entry: ({ name }: { name: string }) =>
      name === "key" ? { value: "Bearer sk-1" } : { error: `Secret default/${name} not found` },
  },
  services: { resolve: () => FOUND },
} as unknown as SettingsContext; // the translators call nothing else of it

/** Runs a translator; returns its result without the type names of messages, and what it reported. */
function run(translate: (report: (path: string, message: string, severity?: string) => void) => unknown): unknown[] {
  const reports: unknown[] = [];
  const result = translate((...report) => void reports.push(report.filter((part) => part !== undefined)));
  const text = JSON.stringify(result, (name, value: unknown) => (name === "$typeName" ? undefined : value));
  return [JSON.parse(text), reports];
}

const cases: readonly [name: string, run: unknown[], expected: unknown, reports?: unknown[]][] = [
  [
    "roles of prompts become lower case",
    run(() =>
      translatePrompt({
        prepend: [{ role: "SYSTEM", content: "Be BRIEF." }],
        append: [{ role: "user", content: "x" }],
      }),
    ),
    { prompt: { prepend: [{ role: "system", content: "Be BRIEF." }], append: [{ role: "user", content: "x" }] } },
  ],
  ["a prompt without messages says nothing", run(() => translatePrompt({ prepend: [] })), {}],
  [
    "defaults keep any JSON value",
    run(() =>
      bodyFields.translateDefaults([
        { field: "a.b", value: null },
        { field: "stop", value: ["x", { y: 1 }] },
      ]),
    ),
    {
      defaults: [
        { field: "a.b", valueJson: "null" },
        { field: "stop", valueJson: '["x",{"y":1}]' },
      ],
    },
  ],
  [
    "overrides keep their order",
    run(() =>
      bodyFields.translateOverrides([
        { field: "b", value: 1 },
        { field: "b", value: 2 },
      ]),
    ),
    {
      overrides: [
        { field: "b", valueJson: "1" },
        { field: "b", valueJson: "2" },
      ],
    },
  ],
  [
    "transformations see llmRequest, and a broken one is a warning",
    run((report) =>
      bodyFields.translateTransformations(
        [
          { field: "max_tokens", expression: "min(llmRequest.max_tokens, 100)" },
          { field: "x", expression: "response.code" },
        ],
        context,
        report,
      ),
    ),
    {
      transformations: [
        { field: "max_tokens", expression: "min(llmRequest.max_tokens, 100)" },
        { field: "x", expression: "response.code" },
      ],
    },
    [["[1].expression", 'unknown variable "response" (at 0)', "warning"]],
  ],
  [
    "aliases are sorted",
    run(() => Object.keys(translateModelAliases({ b: "2", a: "1" }).modelAliases ?? {})),
    ["a", "b"],
  ],
  [
    "prompt caching has defaults",
    run(() => translatePromptCaching({})),
    { promptCaching: { cacheSystem: true, cacheMessages: true, cacheTools: false, minTokens: 1024, messageOffset: 0 } },
  ],
  [
    "prompt caching keeps what is set",
    run(() =>
      translatePromptCaching({
        cacheSystem: false,
        cacheMessages: false,
        cacheTools: true,
        minTokens: 0,
        cacheMessageOffset: 3,
      }),
    ),
    { promptCaching: { cacheSystem: false, cacheMessages: false, cacheTools: true, minTokens: 0, messageOffset: 3 } },
  ],
  [
    "every route type has a number",
    run(() =>
      translateRoutes({
        "*": "Detect",
        "/a": "Completions",
        "/b": "Messages",
        "/c": "Responses",
        "/d": "Embeddings",
        "/e": "MessagesTokenCount",
        "/f": "Realtime",
        "/g": "Models",
        "/h": "Passthrough",
      }),
    ),
    {
      routes: {
        "*": RouteType.DETECT,
        "/a": RouteType.COMPLETIONS,
        "/b": RouteType.MESSAGES,
        "/c": RouteType.RESPONSES,
        "/d": RouteType.EMBEDDINGS,
        "/e": RouteType.MESSAGES_TOKEN_COUNT,
        "/f": RouteType.REALTIME,
        "/g": RouteType.MODELS,
        "/h": RouteType.PASSTHROUGH,
      },
    },
  ],
  [
    "a regex masks by default",
    run(() => translateRegex({ matches: ["a+"], builtins: ["Ssn", "CreditCard", "PhoneNumber", "Email", "CaSin"] })),
    {
      kind: {
        case: "regex",
        value: {
          matches: ["a+"],
          builtins: [
            BuiltinPattern.SSN,
            BuiltinPattern.CREDIT_CARD,
            BuiltinPattern.PHONE_NUMBER,
            BuiltinPattern.EMAIL,
            BuiltinPattern.CA_SIN,
          ],
        },
      },
      action: GuardAction.MASK,
    },
  ],
  [
    "a regex may audit",
    run(() => translateRegex({ action: "Audit" })),
    { kind: { case: "regex", value: { matches: [], builtins: [] } }, action: GuardAction.AUDIT },
  ],
  [
    "a webhook has a service, headers and matches",
    run((report) =>
      translateWebhook(
        {
          backendRef: { name: "guard", port: 80 },
          headers: { "x-b": "llmRequest.model", ":path": "nonsense(" },
          forwardHeaderMatches: [
            { name: "X-Tenant", value: "a" },
            { name: "x-id", value: "[0-9]+", type: "RegularExpression" },
          ],
          failureMode: "FailOpen",
        },
        context,
        report,
      ),
    ),
    {
      kind: {
        case: "webhook",
        value: {
          service: { place: { case: "backend", value: "service/default/guard:80" }, invalidReason: "" },
          headers: [
            { name: ":path", expression: "nonsense(" },
            { name: "x-b", expression: "llmRequest.model" },
          ],
          forwardHeaders: [
            { name: "X-Tenant", value: { case: "exact", value: "a" } },
            { name: "x-id", value: { case: "regex", value: "[0-9]+" } },
          ],
        },
      },
      action: GuardAction.REJECT,
      failOpen: true,
    },
    [["headers.:path", "the expression ends too early (at 9)", "warning"]],
  ],
];

for (const [name, actual, expected, reports = []] of cases) {
  test(name, () => assert.deepEqual(actual, [expected, reports]));
}

const services: readonly [name: string, run: unknown[], value: object, reports?: unknown[]][] = [
  [
    "moderation has a default model, TLS, and a credential from its Secret",
    run((report) => translateModeration({ policies: { auth: { secretRef: { name: "key" } } } }, context, report)),
    { case: "moderation", value: { model: "omni-moderation-latest", auth: "sk-1" } },
  ],
  [
    "a missing Secret leaves moderation a credential that fails",
    run((report) =>
      translateModeration({ model: "m", policies: { auth: { secretRef: { name: "lost" } } } }, context, report),
    ),
    { case: "moderation", value: { model: "m", auth: "unresolved" } },
    [["policies.auth.secretRef", "Secret default/lost not found"]],
  ],
  [
    "guardrailsA keeps identifier, version and region",
    run((report) =>
      translateBedrockGuardrails(
        { identifier: "g", version: "1", region: "eu-west-1", policies: { auth: { key: "k" } } },
        context,
        report,
      ),
    ),
    { case: "guardrailsA", value: { identifier: "g", version: "1", region: "eu-west-1", auth: "k" } },
  ],
  [
    "guardrailsB has a default location",
    run((report) => translateModelArmor({ templateId: "t", projectId: "p" }, context, report)),
    { case: "guardrailsB", value: { template: "t", project: "p", location: "us-central1", auth: undefined } },
  ],
];

for (const [name, [part, actualReports], expected, reports = []] of services) {
  test(name, () => {
    // What `run` returns has lost its type; `expected` shows the shape.
    const { kind } = part as {
      kind: {
        case: string;
        value: { settings: { tls?: object; auth?: { kind: { value: { value?: string; reason?: string } } } } };
      };
    };
    const { settings, ...rest } = kind.value;
    assert.ok(settings.tls, "TLS is on by default");
    assert.deepEqual({ case: kind.case, value: { ...rest, auth: authOf(settings.auth?.kind.value) } }, expected);
    assert.deepEqual(actualReports, reports);
  });
}

test("guards have a scope and a response of their phase by default, and no kind while it is not served", () => {
  const request: RequestGuard[] = [{ regex: { builtins: ["Ssn"] } }];
  const response: ResponseGuard[] = [
    {
      webhook: { backendRef: { name: "guard" } },
      scope: ["ToolInput", "ToolOutput"],
      response: { statusCode: 451, message: "no", headers: [{ name: "x-a", value: "b" }] },
    },
  ];
  const [fields] = run((report) => translatePromptGuard({ streaming: "Enabled", request, response }, context, report));
  const { promptGuard } = fields as { promptGuard: { request: object[]; response: object[]; streaming: boolean } };
  const shared = ({ scope, response: answer }: { scope?: unknown; response?: unknown }): unknown => [scope, answer];
  assert.equal(promptGuard.streaming, true);
  assert.deepEqual(promptGuard.request.map(shared), [
    [
      [GuardScope.SYSTEM_PROMPT, GuardScope.MESSAGES],
      { message: "The request was rejected due to inappropriate content.", status: 403, headers: [] },
    ],
  ]);
  assert.deepEqual(promptGuard.response.map(shared), [
    [
      [GuardScope.TOOL_INPUT, GuardScope.TOOL_OUTPUT],
      { message: "no", status: 451, headers: [{ name: "x-a", value: "b" }] },
    ],
  ]);
});

function authOf(kind: { readonly value?: string; readonly reason?: string } | undefined): string | undefined {
  return kind?.reason === undefined ? kind?.value : "unresolved";
}
