/**
 * Translates an external authorization block without conditions: `extAuth` of `traffic` and of the backend blocks have
 * it in common.
 */
import { create } from "@bufbuild/protobuf";
import type {
  ExtAuthCache as ApiCache,
  ExtAuthGrpc as ApiGrpc,
  ExtAuthHttp as ApiHttp,
  ExtAuthPolicy,
} from "../../../../generated/types/traffic-external.ts";
import {
  ExtAuthCacheSchema,
  ExtAuthGrpcSchema,
  ExtAuthHttpSchema,
  ExtAuthSchema,
  type ExtAuth,
  type ExtAuthCache,
  type ExtAuthGrpc,
  type ExtAuthHttp,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { CelPhase } from "../../../cel/environments/phases.ts";
import { parseDuration } from "../../../lib/time/duration.ts";
import { parseByteSize } from "../../../lib/quantity.ts";
import type { ServiceReader } from "./external-service.ts";
import { checkExpression, expressionMap, type ExpressionContext } from "./unit.ts";

const DEFAULT_ENTRIES = 10_000;
const DEFAULT_HEADERS = ["Authorization"];

export interface ExtAuthContext extends ExpressionContext {
  readonly services: ServiceReader;
}

interface Placed extends ExtAuthContext {
  readonly placeOf: (path: string) => CelPhase;
}

/**
 * @param path of the block, as `placeOf` knows it
 * @param placeOf returns the CEL phase of an expression, which decides which variables it may read
 */
export function translateExtAuth(
  policy: ExtAuthPolicy,
  path: string,
  given: ExtAuthContext,
  placeOf: (path: string) => CelPhase,
): ExtAuth {
  const context = { ...given, placeOf };
  const { grpc, http, forwardBody, cache } = policy;
  const bytes = forwardBody === undefined ? undefined : parseByteSize(forwardBody.maxSize);
  return create(ExtAuthSchema, {
    service: context.services.resolve(policy, path, (at, message) => context.report(at, message)),
    failOpen: policy.failureMode === "FailOpen",
    protocol:
      http === undefined
        ? { case: "grpc", value: translateGrpc(grpc ?? {}, `${path}.grpc`, context) }
        : { case: "http", value: translateHttp(http, `${path}.http`, context) },
    ...(bytes === undefined ? {} : { forwardBodyBytes: bytes }),
    ...(cache === undefined ? {} : { cache: translateCache(cache, `${path}.cache`, context) }),
  });
}

function translateGrpc({ contextExtensions, requestMetadata }: ApiGrpc, path: string, context: Placed): ExtAuthGrpc {
  const extensions = Object.entries(contextExtensions ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const metadata = expressionMap(requestMetadata, `${path}.requestMetadata`, context, context.placeOf);
  return create(ExtAuthGrpcSchema, {
    contextExtensions: Object.fromEntries(extensions),
    ...(requestMetadata === undefined ? {} : { requestMetadata: { expressions: metadata } }),
  });
}

function translateHttp(http: ApiHttp, path: string, context: Placed): ExtAuthHttp {
  const added = expressionMap(http.addRequestHeaders, `${path}.addRequestHeaders`, context, context.placeOf);
  return create(ExtAuthHttpSchema, {
    path: checkAt(http.path, `${path}.path`, context),
    redirect: checkAt(http.redirect, `${path}.redirect`, context),
    body: checkAt(http.body, `${path}.body`, context),
    allowedRequestHeaders: [...(http.allowedRequestHeaders ?? DEFAULT_HEADERS)],
    addRequestHeaders: Object.entries(added).map(([name, expression]) => ({ name, expression })),
    allowedResponseHeaders: [...(http.allowedResponseHeaders ?? [])],
    responseMetadata: expressionMap(http.responseMetadata, `${path}.responseMetadata`, context, context.placeOf),
  });
}

function translateCache({ key, ttl, maxEntries }: ApiCache, path: string, context: Placed): ExtAuthCache {
  const ttlMs = parseDuration(ttl);
  return create(ExtAuthCacheSchema, {
    key: key.map((text, at) => checkAt(text, `${path}.key[${at}]`, context)),
    ttl:
      ttlMs === undefined
        ? { case: "ttlExpression", value: checkAt(ttl, `${path}.ttl`, context) }
        : { case: "ttlMs", value: BigInt(ttlMs) },
    maxEntries: maxEntries ?? DEFAULT_ENTRIES,
  });
}

function checkAt(text: string | undefined, path: string, context: Placed): string {
  return checkExpression(text, path, context, context.placeOf(path));
}
