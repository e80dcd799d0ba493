/**
 * `callout` of a virtual model: one HTTP call to a service, from whose answer expressions compute fields of the client's
 * body, above all the model. Answers may be kept; the expressions run on a kept answer again. The router uses it.
 */
import type { ModelCallout, ModelTarget } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { bodyOf } from "../../../cel/compile/compile-expression.ts";
import { CelError } from "../../../cel/errors.ts";
import type { Expression } from "../../../cel/expression.ts";
import { HeaderView } from "../../../cel/header-view.ts";
import { HeaderList } from "../../../lib/header-list.ts";
import type { BackendDeps } from "../../backends/handler.ts";
import { CalloutError, type Callout } from "../../callouts/callout.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { ExpressionCache } from "../../policies/shared/expression-cache.ts";
import { jsonOf } from "../../policies/shared/expression-support.ts";
import { parseObject, stringOf, type Json, type JsonObject } from "../shared/json.ts";
import { addServiceHeaders, compileServiceHeaders, type ServiceHead } from "../shared/service-head.ts";

/** What a service answered, as expressions see it. */
interface CalloutAnswer {
  readonly headers: HeaderList;
  readonly body: JsonObject;
}

export interface CompiledCallout {
  readonly fallback: ModelTarget | undefined;
  /**
   * Asks the service, and computes the fields of the body from its answer.
   * @returns the fields with the name of the model, or why there is none
   */
  resolve(body: JsonObject, exchange: RoutedExchange): Promise<CalloutChoice | string>;
}

interface CalloutChoice {
  readonly name: string;
  /** undefined removes a field. */
  readonly fields: readonly { readonly name: string; readonly value: Json | undefined }[];
}

/** @throws ConfigError for a cache without a time to live */
export function compileCallout(callout: ModelCallout, deps: BackendDeps): CompiledCallout {
  const { service, headers, body: source, transformation, fallback, cache } = callout;
  const client = deps.callout(service);
  const added = compileServiceHeaders(headers, deps.expression);
  const printed = source === "" ? undefined : deps.expression(source, "llm");
  const fields = transformation.map(({ field, expression }) => ({
    name: field,
    expression: deps.expression(expression, "callout"),
  }));
  const kept =
    cache === undefined
      ? undefined
      : new ExpressionCache<CalloutAnswer>(cache, {
          compile: (text) => deps.expression(text, "llm"),
          nowMs: deps.nowMs,
        });

  async function answerTo(body: JsonObject, exchange: RoutedExchange): Promise<CalloutAnswer | string> {
    const key = kept?.keyOf(exchange);
    const known = key === undefined ? undefined : kept?.get(key);
    if (known !== undefined) return known;
    const head: ServiceHead = { path: client.path === "" ? "/" : client.path, method: "POST", authority: undefined };
    const list = new HeaderList(["content-type", "application/json"]);
    addServiceHeaders(added, exchange, list, head);
    const sent = printBody(body, printed, exchange);
    if (sent === undefined) return "its body cannot be computed";
    const answer = await askService(client, { ...head, headers: list, body: sent }, exchange);
    if (typeof answer !== "string" && key !== undefined) kept?.put(key, answer, exchange);
    return answer;
  }

  return {
    fallback,
    async resolve(body, exchange) {
      const answer = await answerTo(body, exchange);
      if (typeof answer === "string") return answer;
      exchange.setRoot("callout", { headers: new HeaderView(answer.headers), body: answer.body });
      return choiceOf(fields, exchange);
    },
  };
}

function printBody(body: JsonObject, printed: Expression | undefined, exchange: RoutedExchange): Buffer | undefined {
  if (printed === undefined) return Buffer.from(JSON.stringify(body));
  try {
    return bodyOf(printed.evaluate(exchange));
  } catch (error) {
    if (error instanceof CelError) return undefined;
    throw error;
  }
}

/** @returns what is wrong with the service or its answer; never text of the answer */
async function askService(
  client: Callout,
  request: Parameters<Callout["http"]>[0],
  exchange: RoutedExchange,
): Promise<CalloutAnswer | string> {
  if (client.invalidReason !== undefined) return client.invalidReason;
  try {
    const { status, headers, body } = await client.http(request, exchange);
    if (status < 200 || status > 299) return `the service answered with status ${status}`;
    const answer = parseObject(body);
    return answer === undefined ? "the service answered no JSON object" : { headers, body: answer };
  } catch (error) {
    if (error instanceof CalloutError) return error.message;
    throw error;
  }
}

function choiceOf(
  fields: readonly { readonly name: string; readonly expression: Expression }[],
  exchange: RoutedExchange,
): CalloutChoice | string {
  // Null removes a field, as a failure does.
  const computed = fields.map(({ name, expression }) => ({ name, value: jsonOf(expression, exchange) ?? undefined }));
  const name = stringOf(computed.find((field) => field.name === "model")?.value);
  if (name === undefined || name === "") return "its answer names no model";
  return { name, fields: computed.filter((field) => field.name !== "model") };
}
