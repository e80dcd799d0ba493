/**
 * The handler of a Backend that offers models by name: the end of the pipeline for listeners and rules with GwModels.
 * It reads the name from the body, lets the router choose, and calls the provider of the chosen model as the handler of
 * `ai` backends does. Each attempt of a retry chooses anew. The registry creates one per place.
 */
import type { Model, ModelsBackend } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { pathOf } from "../../../lib/network/request-target.ts";
import type { BackendDeps, BackendHandler } from "../../backends/handler.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import type { ClientFormat } from "../client-formats/client-format.ts";
import { clientFormatOf } from "../client-formats/index.ts";
import { callProvider } from "../handler.ts";
import { readModelName } from "../shared/model-name.ts";
import { modelOf } from "../shared/native-path.ts";
import { isOperation } from "../operations/index.ts";
import { compileModels } from "./compile.ts";
import { listGeminiModels, listModels } from "./list.ts";
import { readNamedBody } from "./named-body.ts";
import { ModelRouter } from "./router.ts";

/** Root of expressions in which the name that the client asked for is kept. */
const USER_MODEL = "gwproxy_user_model";

/** @throws ConfigError for a model that this version cannot serve */
export function createModelsHandler(
  { stripsPrefix }: ModelsBackend,
  models: readonly Model[],
  deps: BackendDeps,
): BackendHandler {
  const compiled = compileModels(models, deps);
  const router = new ModelRouter(compiled, deps);
  for (const { match } of [...compiled.concrete, ...compiled.virtual])
    if (!match.includes("*")) deps.meter?.modelConfigured(match);
  return async function serveModels(exchange) {
    if (exchange.connect) throw new ProxyError("backend_unfit", { detail: "CONNECT to a model" });
    const path = pathToModels(exchange, stripsPrefix);
    const format = formatOf(path);
    const list = findList(format, exchange);
    if (list !== undefined) return list(path, router.list(exchange));
    const body = await readNamedBody(exchange);
    const asked = modelOf(path, readModelName(body.object["model"]));
    if (asked === undefined || asked === "") throw new ProxyError("llm_model_missing");
    exchange.setRoot("llmRequest", body.object);
    keepUserModel(exchange, asked);
    const { endpoint, name } = await router.choose(asked, body.object, exchange);
    const renamed = isOperation(format.name) && name !== asked ? body.rename(name) : undefined;
    return callProvider(exchange, endpoint, { row: format, body: body.json, model: name, renamed }, deps);
  };
}

/**
 * Returns what prints the list of models for a client that asks for it. Clients of Google may ask at the path of all
 * others; they name themselves in a header.
 */
function findList({ name }: ClientFormat, { method, requestHeaders }: RoutedExchange): typeof listModels | undefined {
  if (method !== "GET" && method !== "HEAD") return undefined;
  if (name === "GeminiModels") return listGeminiModels;
  if (name !== "Models") return undefined;
  return requestHeaders.get("x-goog-api-client") === undefined ? listModels : listGeminiModels;
}

/** Paths whose bodies are kept, and answers are read for what can be recognised. */
const DETECTED = /\/v1\/(?:images\/.+|responses\/compact)\/*$/;

function formatOf(path: string): ClientFormat {
  return DETECTED.test(path) ? clientFormatOf(path, "Detect") : clientFormatOf(path);
}

/** Returns the path without the query and, below an HTTPRoute, without the prefix that its rule matched. */
function pathToModels({ target, matchedPrefix }: RoutedExchange, stripsPrefix: boolean): string {
  const path = pathOf(target);
  const prefix = stripsPrefix ? (matchedPrefix ?? "/") : "/";
  return prefix === "/" || !path.startsWith(prefix) ? path : path.slice(prefix.length) || "/";
}

function keepUserModel(exchange: RoutedExchange, name: string): void {
  const known = exchange.root("metadata");
  exchange.setRoot("metadata", new Map<unknown, unknown>([...(known instanceof Map ? known : []), [USER_MODEL, name]]));
}
