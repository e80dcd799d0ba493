/** The option of chat completions that makes a stream report its usage, which token limits and costs depend on. */
import { objectOf, type JsonObject } from "../../shared/json.ts";
import type { ChatFormat, LlmRequest } from "../chat-format.ts";

/** Asks the provider for usage, whatever the client asked for. */
export function askForUsage(body: JsonObject): void {
  body["stream_options"] = { ...objectOf(body["stream_options"]), include_usage: true };
}

/** Whether the client wants to see usage. In all other formats a stream always reports it. */
export function asksForUsage({ name }: ChatFormat, { body }: LlmRequest): boolean {
  return name !== "Completions" || objectOf(body["stream_options"])?.["include_usage"] === true;
}
