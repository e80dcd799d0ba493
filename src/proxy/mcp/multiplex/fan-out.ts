/**
 * Sends one request to several targets at once and makes one answer of theirs. What targets say before they respond is
 * passed on in order of arrival. With FailOpen targets that fail are left out; otherwise the first failure is the answer.
 * A target that hangs must not hold up the answer for ever, so there is a time limit besides those of the settings.
 */
import type { DebugTrace, McpTargetOutcome } from "../../exchange/debug-trace.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessage, type Message } from "../message/message.ts";
import { findMember, textOf } from "../message/spans.ts";
import { answerWith, refusalTo, streamOf } from "./answers.ts";
import { SilentTarget, type DownTargets } from "./down-targets.ts";
import type { McpAnswer, Target } from "../targets/target.ts";
import { StreamMerger } from "./streams/stream-merger.ts";

/** Time for the responses of all targets. */
const LIMIT_MS = 30_000;

/** A request as one of the targets shall read it. */
export interface TargetRequest {
  readonly target: Target;
  readonly message: Message;
}

/** The response of a target. */
export interface TargetResponse {
  readonly target: Target;
  readonly message: Message;
}

export interface FanOutOptions {
  readonly failOpen: boolean;
  /** Set when an operator follows the request (`/debug/trace`). */
  readonly debug: DebugTrace | undefined;
  /** Counts the items of a list before and after authorization, for operators; unset for what is no list. */
  readonly countItems?: (response: TargetResponse) => Pick<McpTargetOutcome, "itemsBefore" | "itemsAfter">;
  /** Targets that are not asked again yet where those that fail are left out. */
  readonly down: DownTargets;
  readonly limitMs?: number;
  readonly send: (request: TargetRequest) => Promise<McpAnswer>;
  /** Rewrites what a target sends before its response; undefined drops it. @throws McpError when it must not be sent */
  readonly view: (message: Message, target: Target) => Message | undefined;
  /**
   * Makes the response to the client of the results of the targets, in the order of the requests.
   * @param unserved number of targets that do not serve the method
   */
  readonly merge: (results: readonly TargetResponse[], unserved: number) => Message | Promise<Message>;
}

/** What is known of the responses so far. */
interface Gathered {
  readonly requests: readonly TargetRequest[];
  readonly responses: Map<Target, Message>;
  readonly failures: unknown[];
  readonly options: FanOutOptions;
}

/** @throws McpError, ProxyError */
export async function fanOut(requests: readonly TargetRequest[], options: FanOutOptions): Promise<McpAnswer> {
  const gathered: Gathered = { requests, responses: new Map(), failures: [], options };
  const streams = new StreamMerger<Target>(false);
  const startedMs = performance.now();
  for (const { target, answer } of await sendAll(gathered)) {
    if (answer.only !== undefined) gathered.responses.set(target, answer.only);
    else streams.add(target, answer);
  }
  if (streams.size === 0) return answerWith(await finish(gathered));
  const leftMs = (options.limitMs ?? LIMIT_MS) - (performance.now() - startedMs);
  const timer = setTimeout(() => streams.failAll(silent()), Math.max(0, leftMs)).unref();
  return streamOf(readStreams(streams, gathered, timer), () => streams.close());
}

/** Sends the requests at once. With FailClosed the first failure ends those that have been answered. */
async function sendAll({ requests, failures, responses, options }: Gathered) {
  const opened: { readonly target: Target; readonly answer: McpAnswer }[] = [];
  let isOver = false;
  const limit = startLimit(options.limitMs ?? LIMIT_MS);
  const send = async (request: TargetRequest): Promise<void> => {
    const { target } = request;
    const answer = await sendInTime(request, options, limit.passed);
    if (isOver) return answer.cancel();
    if (answer.body === undefined) opened.push({ target, answer });
    else responses.set(target, readRefusal(request.message, answer.body, answer.status));
  };
  try {
    if (options.failOpen) {
      for (const outcome of await Promise.allSettled(askable(requests, options).map(send)))
        if (outcome.status === "rejected") failures.push(outcome.reason);
      return opened;
    }
    await Promise.all(requests.map(send));
    return opened;
  } catch (error) {
    isOver = true;
    for (const { answer } of opened) answer.cancel();
    throw error;
  } finally {
    limit.clear();
  }
}

/** Leaves out targets that were down a moment ago, unless all of them were. */
function askable(requests: readonly TargetRequest[], { down }: FanOutOptions): readonly TargetRequest[] {
  const up = requests.filter(({ target }) => !down.isDown(target));
  return up.length === 0 ? requests : up;
}

/** @param passed rejects when the time is over @throws McpError, ProxyError */
async function sendInTime(request: TargetRequest, { send, down }: FanOutOptions, passed: Promise<never>) {
  const sending = send(request);
  try {
    const answer = await Promise.race([sending, passed]);
    down.answered(request.target);
    return answer;
  } catch (error) {
    down.failed(request.target, error);
    // What comes after the time is over has no reader.
    if (error instanceof SilentTarget) void sending.then((late) => late.cancel()).catch(() => undefined);
    throw error;
  }
}

function startLimit(limitMs: number): { readonly passed: Promise<never>; clear(): void } {
  const { promise, reject } = Promise.withResolvers<never>();
  // The targets may have answered before anything waits for the limit.
  promise.catch(() => undefined);
  const timer = setTimeout(() => reject(silent()), limitMs).unref();
  return { passed: promise, clear: () => clearTimeout(timer) };
}

function silent(): SilentTarget {
  return new SilentTarget(ERROR_CODES.internal, "a server did not answer in time", { status: 500 });
}

/**
 * Reads the JSON-RPC error that an HTTP error came with, as the response to a request. Servers that refuse a request
 * before they read it give no id, or null.
 * @throws McpError when it came with none
 */
function readRefusal(request: Message, body: Buffer, status: number): Message {
  const message = readMessage(body);
  if ("kind" in message && message.kind === "error" && message.payload !== undefined)
    return message.id === request.id ? message : refusalTo(request, textOf(message.bytes, message.payload));
  const detail = `it answered with status ${status}`;
  throw new McpError(ERROR_CODES.internal, "a server refused the request", { status: 500, detail });
}

async function* readStreams(
  streams: StreamMerger<Target>,
  gathered: Gathered,
  timer: NodeJS.Timeout,
): AsyncGenerator<Message> {
  const { responses, failures, options } = gathered;
  try {
    for (let arrival = await streams.next(); arrival !== undefined; arrival = await streams.next()) {
      const { source } = arrival;
      if (arrival.kind === "message") {
        const { message } = arrival;
        const isResponse = message.kind === "result" || message.kind === "error";
        if (isResponse) responses.set(source, message);
        const seen = isResponse ? undefined : options.view(message, source);
        if (seen !== undefined) yield seen;
      } else if (!responses.has(source)) {
        const error = arrival.kind === "error" ? arrival.error : unanswered();
        if (!options.failOpen) throw error;
        failures.push(error);
      }
    }
    // A request that was given up has no response.
    if (!streams.isClosed) yield await finish(gathered);
  } finally {
    clearTimeout(timer);
    streams.close();
  }
}

/** Makes the one response. With FailClosed the first error of a target, in their order, is that response. */
async function finish(gathered: Gathered): Promise<Message> {
  const { requests, responses, failures, options } = gathered;
  const results: TargetResponse[] = [];
  const errors: Message[] = [];
  let unserved = 0;
  for (const { target } of requests) {
    const message = responses.get(target);
    if (message?.kind === "result") results.push({ target, message });
    else if (message !== undefined && isUnserved(message)) unserved++;
    else if (message !== undefined) errors.push(message);
  }
  options.debug?.record({ type: "mcpFanout", targets: outcomesOf(gathered) });
  const [error] = errors;
  if (error !== undefined && (!options.failOpen || results.length === 0)) return error;
  if (failures.length > 0 && results.length + unserved === 0) throw failures.at(-1);
  return options.merge(results, unserved);
}

/** Describes for operators what became of the request at each target. */
function outcomesOf({ requests, responses, options }: Gathered): McpTargetOutcome[] {
  return requests.map(({ target, message: { kind, method = kind } }) => {
    const response = responses.get(target);
    const items = response?.kind === "result" ? options.countItems?.({ target, message: response }) : undefined;
    return { target: target.name, method, outcome: outcomeOf(response), ...items };
  });
}

function outcomeOf(response: Message | undefined): string {
  if (response === undefined) return "failed";
  if (response.kind === "result") return "ok";
  return isUnserved(response) ? "unserved" : "error";
}

function unanswered(): McpError {
  return new McpError(ERROR_CODES.internal, "a server did not answer the request", { status: 500 });
}

/**
 * Whether a target answered that it does not serve the method: a server of tools knows no prompts. It has nothing to add
 * then, which is no failure.
 */
export function isUnserved({ kind, bytes, payload }: Message): boolean {
  if (kind !== "error" || payload === undefined) return false;
  const code = findMember(bytes, payload, "code");
  return code !== undefined && textOf(bytes, code) === String(ERROR_CODES.methodNotFound);
}
