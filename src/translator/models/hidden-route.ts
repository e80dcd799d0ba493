/**
 * Makes the resources through which models on a listener are reached: a route with the paths that clients of models
 * call, and the Backend that stands for the models. `declare.ts` uses it. An ordinary route of the listener with a more
 * specific match keeps its requests.
 */
import { create } from "@bufbuild/protobuf";
import {
  BackendSchema,
  HttpMatchSchema,
  HttpRouteSchema,
  HttpRuleSchema,
  ModelsBackendSchema,
  RouteParentSchema,
  WeightedBackendSchema,
  type HttpMatch,
  type ObjectRef,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ObjectId } from "../../api/object.ts";
import { resourceOf } from "../../ir/encode.ts";
import { modelsKey } from "../../ir/keys.ts";
import type { Resource } from "../../ir/resource.ts";
import { irRef } from "../references/refs.ts";

const EXACT_PATHS = [
  "/v1/models",
  "/models",
  "/v1beta/models",
  "/v1/chat/completions",
  "/v1/messages",
  "/v1/messages/count_tokens",
  "/v1/responses",
  "/v1/responses/compact",
  "/v1/images/generations",
  "/v1/images/edits",
  "/v1/images/variations",
  "/v1/embeddings",
  "/v1/rerank",
  "/v2/rerank",
];

/** One model of the list, whose name may hold slashes; and the native paths of Gemini and Vertex AI. */
const PATTERNS = [
  "(?:/v1(?:beta)?)?/models/[^:]+",
  "/.*/models/.+:(?:rawPredict|streamRawPredict|generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)",
];

/** @param gateway the Gateway that the listener belongs to @param listener its key */
export function routeToModels(gateway: ObjectId, listener: string): Resource[] {
  const object = irRef(gateway);
  const backend = modelsKey(listener);
  const rule = create(HttpRuleSchema, {
    matches: [
      ...EXACT_PATHS.map((value) => matchOf({ case: "exact", value })),
      ...PATTERNS.map((value) => matchOf({ case: "regex", value })),
    ],
    backends: [create(WeightedBackendSchema, { weight: 1, backend })],
  });
  const route = create(HttpRouteSchema, {
    key: backend,
    object,
    parents: [create(RouteParentSchema, { listener })],
    rules: [rule],
  });
  return [resourceOf("HttpRoute", route), modelsBackend(backend, object, false)];
}

/**
 * Returns the Backend that stands for models. @param stripsPrefix whether the matched prefix is no part of their paths
 */
export function modelsBackend(key: string, object: ObjectRef, stripsPrefix: boolean): Resource {
  const value = create(ModelsBackendSchema, { stripsPrefix });
  return resourceOf("Backend", create(BackendSchema, { key, object, kind: { case: "models", value } }));
}

function matchOf(path: HttpMatch["path"]): HttpMatch {
  return create(HttpMatchSchema, { path });
}
