/** Translates `llmg`, a project in Vertex AI. `index.ts` uses it. */
import { create } from "@bufbuild/protobuf";
import type { ProjectSettings } from "../../../../generated/types/llm.ts";
import { VertexServiceSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ProviderPart } from "./provider.ts";

const DEFAULT_LOCATION = "global";

export function translateVertex({ model, projectId, region }: ProjectSettings): ProviderPart {
  const value = create(VertexServiceSchema, { project: projectId, location: region ?? DEFAULT_LOCATION });
  return { identity: "gcp.vertex_ai", model: model ?? "", service: { case: "vertex", value } };
}
