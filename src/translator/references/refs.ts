/** Converts object names into the form of the IR. */
import { create } from "@bufbuild/protobuf";
import { ObjectRefSchema, type ObjectRef } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ObjectId } from "../../api/object.ts";

export function irRef({ kind, namespace, name }: ObjectId): ObjectRef {
  return create(ObjectRefSchema, { kind, namespace, name });
}
