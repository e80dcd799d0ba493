/**
 * Visits every message inside a message, outermost first. `print.ts` uses it. The walk follows the descriptors of
 * ir.proto, so a new message type cannot be forgotten.
 */
import { isFieldSet, type DescMessage, type Message } from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";

export type Visitor = (message: Message, schema: DescMessage) => void;

export function visit(schema: DescMessage, message: Message, visitor: Visitor): void {
  walk(reflect(schema, message), visitor);
}

function walk(node: ReflectMessage, visitor: Visitor): void {
  visitor(node.message, node.desc);
  for (const field of node.desc.fields) {
    if (!isFieldSet(node.message, field)) continue;
    if (field.fieldKind === "message") walk(node.get(field), visitor);
    else if (field.fieldKind === "list" && field.listKind === "message")
      for (const item of node.get(field)) walk(item as ReflectMessage, visitor); // a list of messages by listKind
    else if (field.fieldKind === "map" && field.mapKind === "message")
      // a map of messages by mapKind
      for (const item of node.get(field).values()) walk(item as ReflectMessage, visitor);
  }
}
