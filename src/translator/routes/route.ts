/** Defines the translation of a route, which is the same for all kinds. */
import { create } from "@bufbuild/protobuf";
import { RouteParentSchema, type RouteParent } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Resource } from "../../ir/resource.ts";
import type { ParentView, RouteError } from "../shared/views.ts";

export interface TranslatedRoute {
  readonly resource: Resource;
  /** Keys of the Backends that the rules name. */
  readonly backends: readonly string[];
  readonly errors: readonly RouteError[];
}

export function irParents(parents: readonly ParentView[]): RouteParent[] {
  return parents.flatMap(({ listeners }) =>
    listeners.map(({ key, hostnames }) => create(RouteParentSchema, { listener: key, hostnames: [...hostnames] })),
  );
}
