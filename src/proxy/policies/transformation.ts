/**
 * Rewrites requests and responses by expressions, in the order metadata, add, set, remove, body. A header whose
 * expression fails or yields null is removed: a value that the client sent must not survive in its place.
 */
import type {
  Transform,
  Transformation,
  TransformationChoice,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Exchange, Reply } from "../exchange/exchange.ts";
import { compileChoice } from "./shared/conditional.ts";
import type { Policy, PolicyDeps } from "./policy.ts";
import { compileTransform, type CompiledTransform } from "./shared/transform-support.ts";
import { requestTarget, transformRequestBody } from "./shared/request-support.ts";
import { captureResponse, replaceResponseBody, responseTarget } from "./shared/response-support.ts";

interface Compiled {
  readonly request: CompiledTransform | undefined;
  readonly response: CompiledTransform | undefined;
}

export const transformation: Policy<TransformationChoice> = {
  compile({ branches }, deps) {
    const choose = compileChoice(branches, (branch) => compileBoth(branch.transformation, deps), deps, "pass over");
    return async function transformation(exchange, next) {
      // Chosen once: the branch that transformed the request also transforms the response.
      const chosen = choose(exchange);
      if (chosen?.request !== undefined) await onRequest(chosen.request, exchange);
      const reply = await next();
      if (chosen?.response !== undefined) await onResponse(chosen.response, exchange, reply);
      return reply;
    };
  },
};

function compileBoth(spec: Transformation | undefined, deps: PolicyDeps): Compiled {
  const compile = (place: "request" | "response", transform?: Transform): CompiledTransform | undefined =>
    transform === undefined ? undefined : compileTransform(transform, place, deps);
  return { request: compile("request", spec?.request), response: compile("response", spec?.response) };
}

async function onRequest(transform: CompiledTransform, exchange: Exchange): Promise<void> {
  transform.metadata(exchange, exchange);
  transform.headers(requestTarget(exchange), exchange);
  if (transform.body !== undefined) await transformRequestBody(exchange, transform.body(exchange));
}

async function onResponse(transform: CompiledTransform, exchange: Exchange, reply: Reply): Promise<void> {
  const scope = await captureResponse(exchange, reply, transform.readsResponseBody);
  transform.metadata(exchange, scope);
  transform.headers(responseTarget(reply), scope);
  if (transform.body !== undefined) replaceResponseBody(reply, transform.body(scope));
}
