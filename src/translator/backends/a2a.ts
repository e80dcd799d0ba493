/** Translates `a2a` of a GwBackend: an agent at one host and port. `translate.ts` uses it. */
import { create } from "@bufbuild/protobuf";
import type { A2ABackend as ApiA2a } from "../../../generated/types/backend.ts";
import {
  A2aBackendSchema,
  type A2aBackend,
  type DestinationScope,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { translateStatic } from "./static.ts";

export function translateA2a(agent: ApiA2a, destinationScope: DestinationScope): A2aBackend {
  return create(A2aBackendSchema, { static: translateStatic(agent, destinationScope) });
}
