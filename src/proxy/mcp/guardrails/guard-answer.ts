/** Puts the check of results between a target and the multiplexer, or between the multiplexer and the client. */
import type { Message } from "../message/message.ts";
import type { McpAnswer } from "../targets/target.ts";
import type { GuardedRequest, GuardedTargets } from "./guarded-request.ts";

/** Messages before the result pass at once; an answer with an error status is passed on as it is. */
export async function guardAnswer(answer: McpAnswer, guard: GuardedRequest, about: GuardedTargets): Promise<McpAnswer> {
  if (answer.body !== undefined) return answer;
  if (answer.only === undefined) return { ...answer, messages: checkResults(answer.messages, guard, about) };
  const only = await guard.checkResult(answer.only, about);
  return { ...answer, only, messages: yieldOnly(only) };
}

async function* checkResults(
  messages: McpAnswer["messages"],
  guard: GuardedRequest,
  about: GuardedTargets,
): AsyncGenerator<Message> {
  for await (const message of messages)
    yield message.kind === "result" ? await guard.checkResult(message, about) : message;
}

async function* yieldOnly(message: Message): AsyncGenerator<Message> {
  yield message;
}
