/** What the vendors answer, and the body with which each client asks for it. */
import type { OpenAiAnswer } from "../../support/servers/llm/openai-answers.ts";
import type { Fields } from "./bodies.ts";

export interface AnswerCase {
  readonly answer: OpenAiAnswer;
  /** Names of bodies; the first one that the client has is sent. */
  readonly asks: readonly string[];
}

const CALLS = [
  { id: "call_1", name: "weather", arguments: '{"city":"Rome","days":[1,2]}' },
  { id: "call_2", name: "time", arguments: "{}" },
];
const REASONING = { text: "Hmm, well.", sealed: "c2lnbmVkLWJ5LXRoZS12ZW5kb3I=" };

export const ANSWERS: Readonly<Record<string, AnswerCase>> = {
  text: { answer: { text: "Hällo ☂." }, asks: ["settings"] },
  calls: { answer: { text: "I look.", calls: CALLS }, asks: ["required"] },
  thinking: { answer: { reasoning: REASONING, text: "Yes." }, asks: ["effort", "thinking", "settings"] },
  cut: { answer: { text: "Once upon", isCut: true }, asks: ["settings"] },
  refusal: { answer: { refusal: "I cannot help." }, asks: ["settings"] },
  "bad request": {
    answer: { error: { status: 400, type: "invalid_request_error", message: "no such thing" } },
    asks: ["settings"],
  },
  "too many requests": {
    answer: { error: { status: 429, type: "rate_limit_error", message: "slow down" } },
    asks: ["settings"],
  },
};

export function bodyFor({ asks }: AnswerCase, bodies: Readonly<Record<string, Fields>>): Fields {
  const name = asks.find((each) => bodies[each] !== undefined) ?? "";
  return { ...bodies[name] };
}
