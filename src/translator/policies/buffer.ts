/** Translates `traffic.buffer`: the request and response bodies that are buffered until they are complete. */
import { create } from "@bufbuild/protobuf";
import type { BufferBody } from "../../../generated/types/traffic.ts";
import {
  BodyBufferSchema,
  BodyBuffersSchema,
  type BodyBuffer,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { parseByteSize } from "../../lib/quantity.ts";
import type { UnitContext, UnitTranslator } from "./shared/unit.ts";

export const buffer: UnitTranslator = {
  translate({ buffer: block }, context) {
    if (block === undefined) return undefined;
    const value = create(BodyBuffersSchema);
    if (block.request !== undefined) value.request = translateBody(block.request, "buffer.request", context);
    if (block.response !== undefined) value.response = translateBody(block.response, "buffer.response", context);
    return { case: "buffer", value };
  },
};

/** Translates one body. A size that cannot be parsed becomes the smallest limit, because the limit must not vanish. */
function translateBody({ maxBytes, failureMode }: BufferBody, path: string, context: UnitContext): BodyBuffer {
  const bytes = maxBytes === undefined ? 0 : parseByteSize(maxBytes);
  if (bytes === undefined) context.report(`${path}.maxBytes`, `"${maxBytes}" is not a size in bytes`);
  return create(BodyBufferSchema, { maxBytes: bytes ?? 1, failOpen: failureMode === "FailOpen" });
}
