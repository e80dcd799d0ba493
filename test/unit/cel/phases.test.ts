import assert from "node:assert/strict";
import { test } from "node:test";
import { parseExpression } from "../../../src/cel/compile/compile-expression.ts";
import { CelError } from "../../../src/cel/errors.ts";
import { CEL_PHASES, type CelPhase, environmentOf } from "../../../src/cel/environments/phases.ts";

/** Variable → the places that have it; everywhere else it must be refused. */
const WHERE: readonly (readonly [expression: string, places: readonly CelPhase[]])[] = [
  ["source.address", CEL_PHASES.filter((place) => place !== "process")],
  ["destination.port", CEL_PHASES.filter((place) => place !== "process")],
  ["env.gateway", CEL_PHASES],
  ["request.path", ["gateway", "request", "backend", "llm", "callout", "mcp", "response", "log"]],
  ["jwt.sub", ["gateway", "request", "backend", "llm", "callout", "mcp", "response", "log"]],
  ["proxy.route.name", ["request", "backend", "llm", "callout", "mcp", "response", "log"]],
  ["request.endTime", ["log"]],
  ["backend.name", ["backend", "llm", "callout", "mcp", "response", "log"]],
  ["llmRequest.model", ["llm", "callout"]],
  ["llm.requestModel", ["llm", "callout", "response", "log"]],
  ["callout.body", ["callout"]],
  ["mcp.tool.name", ["mcp", "log"]],
  ["mcp.tool.arguments", ["log"]],
  ["mcp.sessionId", ["log"]],
  ["mcpGuardrails.verdict", ["mcp", "response", "log"]],
  ["response.code", ["response", "log"]],
  ["proxy.upstreamDuration", ["response", "log"]],
  ["proxy.responseProcessingDuration", ["log"]],
];

function compilesIn(place: CelPhase, expression: string): boolean {
  try {
    parseExpression(expression, environmentOf(place));
    return true;
  } catch (error) {
    assert.ok(error instanceof CelError && error.code === "unknown_variable", String(error));
    return false;
  }
}

for (const [expression, places] of WHERE) {
  test(`${expression} exists in ${places.join(", ")} and nowhere else`, () => {
    assert.deepEqual(
      CEL_PHASES.filter((place) => compilesIn(place, expression)),
      places,
    );
  });
}
