/**
 * Adjusts requests of the Messages format for Claude models on Vertex AI: the model is in the path, the version in the
 * body, and fields that the platform refuses are left out. index.ts uses it.
 */
import { listOf, objectOf, type Json, type JsonObject } from "../../shared/json.ts";

const VERSION = "vertex-2023-10-16";

export function adjustMessages(body: JsonObject): void {
  body["anthropic_version"] = VERSION;
  // JSON.stringify skips undefined members; deleting a member would make the object slow to print.
  body["model"] = undefined;
  if (body["output_format"] !== undefined) body["output_format"] = undefined;
  removeScope(body);
  removeScopes(body["system"]);
  removeScopes(body["tools"]);
  for (const message of listOf(body["messages"])) removeScopes(objectOf(message)?.["content"]);
}

/** Removes the scopes of cache marks from blocks, and from the blocks in results of tools. */
function removeScopes(blocks: Json | undefined): void {
  for (const item of listOf(blocks)) {
    const block = objectOf(item);
    if (block === undefined) continue;
    removeScope(block);
    for (const inner of listOf(block["content"])) removeScope(objectOf(inner));
  }
}

function removeScope(block: JsonObject | undefined): void {
  const mark = objectOf(block?.["cache_control"]);
  if (mark?.["scope"] !== undefined) mark["scope"] = undefined;
}
