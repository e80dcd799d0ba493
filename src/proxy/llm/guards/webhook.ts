/**
 * The guard `webhook`: a service of the user's own that passes, masks or rejects. It is sent the messages of a request
 * or the choices of an answer, in a flat form without pictures and tool data.
 */
import type { WebhookGuard } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Scope } from "../../../cel/scope.ts";
import { HeaderList } from "../../../lib/header-list.ts";
import { ProxyError } from "../../exchange/errors.ts";
import { compilePattern, type TextTest } from "../../router/pattern.ts";
import type { FlatMessage } from "../formats/guarded-text.ts";
import { objectOf, stringOf, type JsonObject } from "../shared/json.ts";
import { PASS, type Check, type GuardDeps, type GuardInput, type Verdict } from "./guard.ts";
import { askService, unusable } from "./service.ts";
import { addServiceHeaders, compileServiceHeaders, isForwardable, type ServiceHead } from "../shared/service-head.ts";

const PATHS = { Request: "/request", Response: "/response" } as const;
interface ForwardedHeader {
  readonly name: string;
  readonly matches: TextTest;
}

/** @throws ConfigError when a pattern for headers is not RE2 */
export function compileWebhook({ service, headers, forwardHeaders }: WebhookGuard, deps: GuardDeps): Check {
  const callout = deps.callout(service);
  const forwarded = forwardHeaders.map(({ name, value }): ForwardedHeader => {
    const { value: text = "" } = value;
    return {
      name: name.toLowerCase(),
      matches: value.case === "regex" ? compilePattern(text) : (given) => given === text,
    };
  });
  const added = compileServiceHeaders(headers, deps.expression);
  return async (input) => {
    const { phase, exchange } = input;
    const head: ServiceHead = { path: PATHS[phase], method: "POST", authority: undefined };
    const list = new HeaderList();
    forwardHeadersOf(input, forwarded, list);
    addServiceHeaders(added, scopeOf(input), list, head);
    const body = { body: phase === "Request" ? requestBody(input) : answerBody(input) };
    const answer = await askService(callout, { ...head, headers: list, body }, exchange);
    return verdictOf(answer.body, input);
  };
}

function requestBody(input: GuardInput): JsonObject {
  return { messages: input.messages().map(({ role, content }) => ({ role, content })) };
}

function answerBody(input: GuardInput): JsonObject {
  return { choices: input.choices().map(({ role, text }) => ({ message: { role, content: text } })) };
}

/** Adds all values of a name when one of them matches. */
function forwardHeadersOf(input: GuardInput, forwarded: readonly ForwardedHeader[], list: HeaderList): void {
  const { answerHeaders, exchange } = input;
  for (const { name, matches } of forwarded) {
    const isOfRequest = answerHeaders === undefined || name === "traceparent";
    const values = (isOfRequest ? exchange.requestHeaders : answerHeaders).getAll(name);
    if (isForwardable(name) && values.some(matches)) for (const value of values) list.add(name, value);
  }
}

/** Expressions see the client's request, and its body in the phase of requests only. */
function scopeOf({ exchange, request }: GuardInput): Scope {
  return { root: (name) => (name === "llmRequest" ? request : exchange.root(name)) };
}

function verdictOf(answer: JsonObject, input: GuardInput): Verdict {
  const action = objectOf(answer["action"]);
  if (action === undefined) throw unusable("no action");
  const { body } = action;
  const mask = objectOf(body);
  if (mask !== undefined) return input.phase === "Request" ? maskRequest(mask, input) : maskAnswer(mask, input);
  if (body === undefined) return PASS;
  const status = action["status_code"];
  if (typeof body !== "string" || typeof status !== "number" || !Number.isInteger(status))
    throw unusable("no text or no status_code in a rejection");
  // A final answer cannot have a status below 200 (RFC 9110 §15.2).
  if (status < 200 || status > 999) throw unusable("a status_code that no answer can have");
  return { action: "reject", rejection: { status, body } };
}

function maskRequest({ messages }: JsonObject, input: GuardInput): Verdict {
  const masked = contentsIn(messages);
  if (masked.length !== input.messages().length) throw wrongLength();
  return { action: "replace", messages: masked };
}

function maskAnswer({ choices }: JsonObject, input: GuardInput): Verdict {
  if (!Array.isArray(choices)) throw unusable("a mask of another phase");
  const masked = contentsIn(choices.map((choice) => objectOf(choice)?.["message"] ?? null));
  const texts = input.choices();
  if (masked.length !== texts.length) throw wrongLength();
  const changes = texts.flatMap((text, at) => {
    const content = masked[at]?.content ?? text.text;
    return content === text.text ? [] : [{ text, masked: content }];
  });
  return changes.length === 0 ? PASS : { action: "mask", changes };
}

function contentsIn(list: JsonObject["messages"]): FlatMessage[] {
  if (!Array.isArray(list)) throw unusable("a mask of another phase");
  return list.map((item) => {
    const message = objectOf(item);
    const [role, content] = [stringOf(message?.["role"]), stringOf(message?.["content"])];
    if (role === undefined || content === undefined) throw unusable("a message without role or content");
    return { role, content };
  });
}

/** The service answers for another conversation than the one it was sent. */
function wrongLength(): ProxyError {
  return new ProxyError("guard_mask_invalid", { detail: "the mask of the guard service has another length" });
}
