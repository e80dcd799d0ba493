/** Translates `traffic.extAuth`: an external authorization service, called over gRPC or HTTP. */
import { create } from "@bufbuild/protobuf";
import type {
  ExtAuthCache as ApiCache,
  ExtAuthGrpc as ApiGrpc,
  ExtAuthHttp as ApiHttp,
  ExtAuthPolicy,
} from "../../../generated/types/traffic-external.ts";
import {
  ExtAuthBranchSchema,
  ExtAuthCacheSchema,
  ExtAuthChoiceSchema,
  ExtAuthGrpcSchema,
  ExtAuthHttpSchema,
  ExtAuthSchema,
  type ExtAuth,
  type ExtAuthCache,
  type ExtAuthGrpc,
  type ExtAuthHttp,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { parseDuration } from "../../lib/time/duration.ts";
import { parseByteSize } from "../../lib/quantity.ts";
import { branchesOf, checkExpression, expressionMap, type UnitContext, type UnitTranslator } from "./shared/unit.ts";

const DEFAULT_ENTRIES = 10_000;
const DEFAULT_HEADERS = ["Authorization"];

export const extAuth: UnitTranslator = {
  translate({ extAuth: block }, context) {
    if (block === undefined) return undefined;
    const branches = branchesOf<ExtAuthPolicy>("extAuth", block).map(({ condition, conditionPath, policy, path }) =>
      create(ExtAuthBranchSchema, {
        condition: checkExpression(condition, conditionPath, context),
        extAuth: translateCheck(policy, path, context),
      }),
    );
    return { case: "extAuth", value: create(ExtAuthChoiceSchema, { branches }) };
  },
};

function translateCheck(policy: ExtAuthPolicy, path: string, context: UnitContext): ExtAuth {
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

function translateGrpc(
  { contextExtensions, requestMetadata }: ApiGrpc,
  path: string,
  context: UnitContext,
): ExtAuthGrpc {
  const extensions = Object.entries(contextExtensions ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const metadata = expressionMap(requestMetadata, `${path}.requestMetadata`, context);
  return create(ExtAuthGrpcSchema, {
    contextExtensions: Object.fromEntries(extensions),
    ...(requestMetadata === undefined ? {} : { requestMetadata: { expressions: metadata } }),
  });
}

function translateHttp(http: ApiHttp, path: string, context: UnitContext): ExtAuthHttp {
  const added = expressionMap(http.addRequestHeaders, `${path}.addRequestHeaders`, context);
  return create(ExtAuthHttpSchema, {
    path: checkExpression(http.path, `${path}.path`, context),
    redirect: checkExpression(http.redirect, `${path}.redirect`, context),
    body: checkExpression(http.body, `${path}.body`, context),
    allowedRequestHeaders: [...(http.allowedRequestHeaders ?? DEFAULT_HEADERS)],
    addRequestHeaders: Object.entries(added).map(([name, expression]) => ({ name, expression })),
    allowedResponseHeaders: [...(http.allowedResponseHeaders ?? [])],
    responseMetadata: expressionMap(http.responseMetadata, `${path}.responseMetadata`, context),
  });
}

function translateCache({ key, ttl, maxEntries }: ApiCache, path: string, context: UnitContext): ExtAuthCache {
  const ttlMs = parseDuration(ttl);
  return create(ExtAuthCacheSchema, {
    key: key.map((text, at) => checkExpression(text, `${path}.key[${at}]`, context)),
    ttl:
      ttlMs === undefined
        ? { case: "ttlExpression", value: checkExpression(ttl, `${path}.ttl`, context) }
        : { case: "ttlMs", value: BigInt(ttlMs) },
    maxEntries: maxEntries ?? DEFAULT_ENTRIES,
  });
}
