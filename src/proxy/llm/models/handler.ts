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
import { clientFormatOf } from "../client-formats/index.ts";
import { callProvider } from "../handler.ts";
import { modelInPath, readModelName } from "../shared/model-name.ts";
import { readRequest } from "../request.ts";
import { compileModels } from "./compile.ts";
import { listModels } from "./list.ts";
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
    const format = clientFormatOf(path);
    if (format.name === "Models" && (exchange.method === "GET" || exchange.method === "HEAD"))
      return listModels(path, router.list(exchange));
    const body = await readRequest(exchange);
    const asked = readModelName(body["model"]) ?? modelInPath(path);
    if (asked === undefined || asked === "") throw new ProxyError("llm_model_missing");
    exchange.setRoot("llmRequest", body);
    keepUserModel(exchange, asked);
    const { endpoint, name } = await router.choose(asked, body, exchange);
    return callProvider(exchange, endpoint, { row: format, body, model: name }, deps);
  };
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
