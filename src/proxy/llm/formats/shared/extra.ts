/** Top-level fields that only the vendor of the client's format knows. */
import type { Conversation, Vendor, VendorFields } from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
import type { JsonObject } from "../../shared/json.ts";

/** Collects the fields of a body that its reader does not understand. `null` counts as absent. */
export function readExtra(body: JsonObject, read: ReadonlySet<string>, vendor: Vendor): VendorFields {
  const unread = Object.entries(body).filter(
    ([name, value]) => !read.has(name) && value !== null && value !== undefined,
  );
  return { vendor, fields: Object.fromEntries(unread) };
}

/** Returns the fields for a target of the same vendor, which knows those in `known`; names all others as losses. */
export function printExtra(
  { extra: { vendor, fields } }: Conversation,
  { target, known, losses }: { target: Vendor; known: ReadonlySet<string>; losses: Losses },
): JsonObject {
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(fields))
    if (vendor === target && known.has(name)) kept[name] = value;
    else losses.add(name);
  return kept;
}
