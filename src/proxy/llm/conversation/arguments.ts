/** Arguments of calls, which are JSON text in some formats and an object in others. */
import { parseObject, type JsonObject } from "../shared/json.ts";

/**
 * Reads the arguments of a call for a format that wants an object.
 * @returns undefined when the text is neither empty nor a JSON object; the target then gets an empty object and the
 *   loss is named
 */
export function argumentsObject(text: string): JsonObject | undefined {
  return text.trim() === "" ? {} : parseObject(Buffer.from(text));
}
