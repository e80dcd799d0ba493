/**
 * Translates one TCPRoute or TLSRoute into one resource; `../graph.ts` uses it. Such a route has nothing to match
 * inside a connection, so the backends of all rules share the connections by weight. A backend that cannot be resolved
 * affects only its share, whose connections are closed.
 */
import { create } from "@bufbuild/protobuf";
import type { TCPRoute } from "../../../generated/types/gateway-api/tcproute.ts";
import type { TLSRoute } from "../../../generated/types/gateway-api/tlsroute.ts";
import {
  TcpRouteSchema,
  WeightedBackendSchema,
  type WeightedBackend,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { objectId } from "../../api/object.ts";
import { createdAtMs, GATEWAY_GROUP } from "../../api/refs.ts";
import { resourceOf } from "../../ir/encode.ts";
import { routeKey } from "../../ir/keys.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { ParentView, RouteError } from "../shared/views.ts";
import { resolveBackend, type BackendCollections } from "../references/backend-refs.ts";
import { irRef } from "../references/refs.ts";
import { irParents, type TranslatedRoute } from "./route.ts";

export function translateTcpRoute(
  route: TCPRoute | TLSRoute,
  parents: readonly ParentView[],
  context: BackendCollections,
  read: Read,
): TranslatedRoute {
  const id = objectId(route);
  const errors: RouteError[] = [];
  const from = { group: GATEWAY_GROUP, kind: id.kind, namespace: id.namespace };
  const backends = route.spec.rules.flatMap((rule, ruleAt) =>
    rule.backendRefs.map((ref, at): WeightedBackend => {
      const target = resolveBackend(ref, from, context, read);
      const weight = ref.weight ?? 1;
      if (typeof target === "string") return create(WeightedBackendSchema, { weight, backend: target });
      errors.push({ path: `spec.rules[${ruleAt}].backendRefs[${at}]`, ...target });
      return create(WeightedBackendSchema, { weight, invalidReason: target.message });
    }),
  );
  const message = create(TcpRouteSchema, {
    key: routeKey(id.kind, id.namespace, id.name),
    object: irRef(id),
    createdAtMs: BigInt(createdAtMs(route)),
    parents: irParents(parents),
    backends,
  });
  const named = new Set(backends.map(({ backend }) => backend));
  named.delete("");
  return { resource: resourceOf("TcpRoute", message), backends: [...named].sort(), errors };
}
