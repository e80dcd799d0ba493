/** The texts of an event that a client sends in a session, for request guards. guards/session.ts uses it. */
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { responsesTexts } from "../formats/responses/texts.ts";
import { objectOf, type JsonObject } from "../shared/json.ts";
import type { GuardChain } from "./chain.ts";
import { FAILED, isGuardError } from "./text-windows.ts";

/** @returns the message of a rejection; undefined when the event may go on */
export async function checkClientEvent(
  event: JsonObject,
  chain: GuardChain,
  exchange: RoutedExchange,
): Promise<string | undefined> {
  const bodies = bodiesIn(event);
  const texts = bodies.flatMap((body) => responsesTexts.requestTexts(body));
  if (texts.length === 0) return undefined;
  try {
    const result = await chain.run({
      exchange,
      texts: () => texts,
      messages: () => bodies.flatMap((body) => responsesTexts.requestMessages(body)),
      choices: () => [],
      answerHeaders: undefined,
      request: event,
      onMask: "reject",
    });
    return result.rejected ? (result.rejection?.body ?? result.response.message) : undefined;
  } catch (error) {
    if (isGuardError(error)) return FAILED;
    throw error;
  }
}

/**
 * Returns the parts of an event that have the members of a Responses body: `response.create` of a Responses session is
 * one itself; `response`, the settings of a session and an item for the conversation are one below. They are looked for
 * in every event, whatever its type.
 */
function bodiesIn(event: JsonObject): JsonObject[] {
  const bodies = [event];
  for (const name of ["response", "session"]) {
    const body = objectOf(event[name]);
    if (body !== undefined) bodies.push(body);
  }
  const session = objectOf(event["session"]);
  const hints = [
    objectOf(session?.["input_audio_transcription"]),
    objectOf(objectOf(objectOf(session?.["audio"])?.["input"])?.["transcription"]),
  ];
  // What the recognition of speech is told in advance is an instruction as well.
  for (const hint of hints) if (hint !== undefined) bodies.push({ instructions: hint["prompt"] });
  const item = objectOf(event["item"]);
  if (item !== undefined) bodies.push({ input: [item] });
  return bodies;
}
