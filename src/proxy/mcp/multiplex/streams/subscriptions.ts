/**
 * Answers `subscriptions/listen` (2026-07-28): each target is asked for what concerns it, one acknowledgement says what
 * they agreed to, and then their notifications are merged. All carry the id of the client's request, which targets get
 * unchanged.
 */
import { ERROR_CODES, McpError } from "../../mcp-error.ts";
import { readMessage, type Message } from "../../message/message.ts";
import type { McpAnswer, Target } from "../../targets/target.ts";
import { isAbsentResource } from "../absence.ts";
import { notificationOf, responseTo, streamOf } from "../answers.ts";
import { editMessage } from "../rewriting/edit-message.ts";
import { isUnserved } from "../fan-out.ts";
import type { ClientRequest } from "../multiplexer.ts";
import { compareRosters, LIST_CHANGES, type OpenStream } from "./open-streams.ts";
import { sendTo, viewInterim, viewOf, type Server } from "../server.ts";
import { StreamMerger } from "./stream-merger.ts";
import {
  AgreedFilter,
  concerns,
  findFilter,
  printFilter,
  readFilter,
  withResources,
  type SubscriptionFilter,
} from "./subscription-filter.ts";
import type { View } from "../naming/view.ts";

const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";

/** @throws McpError, ProxyError */
export async function subscribe(server: Server, request: ClientRequest): Promise<McpAnswer> {
  const subscription = new Subscription(server, request);
  try {
    await subscription.open();
  } catch (error) {
    subscription.close();
    throw error;
  }
  return streamOf(subscription.messages(), () => subscription.close());
}

/** The messages of a target behind its acknowledgement. */
interface Acknowledged {
  readonly acknowledgement: Message;
  readonly answer: McpAnswer;
}

class Subscription implements OpenStream<Server> {
  #server: Server;
  readonly #request: ClientRequest;
  readonly #filter: SubscriptionFilter;
  readonly #agreed = new AgreedFilter();
  /** Sources are names: a change of the backend makes new targets of the same name. */
  readonly #merger = new StreamMerger<string>(true);
  /** Targets that have agreed to something. */
  readonly #serving = new Set<string>();

  constructor(server: Server, request: ClientRequest) {
    this.#server = server;
    this.#request = request;
    this.#filter = readFilter(request.message, viewOf(server, request));
    server.streams.add(this);
  }

  async open(): Promise<void> {
    const { naming, failOpen } = this.#server;
    const targets = naming.targets.filter((target) => concerns(this.#filter, target));
    const outcomes = await Promise.allSettled(targets.map((target) => this.#ask(target)));
    if (naming.only === undefined) this.#agreed.agree(this.#filter.flags);
    for (const outcome of outcomes) if (outcome.status === "rejected" && !failOpen) throw outcome.reason;
    const failures = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as unknown] : []));
    if (failures.length > 0 && failures.length === targets.length) throw failures[0];
  }

  close(): void {
    this.#server.streams.remove(this);
    this.#merger.close();
  }

  adopt(server: Server): void {
    const change = compareRosters(this.#server.naming, server.naming);
    this.#server = server;
    if (change === undefined) return;
    for (const name of change.gone) this.#merger.remove(name);
    for (const { flag, method } of LIST_CHANGES)
      if (this.#filter.flags.has(flag)) this.#merger.inject("", notificationOf(method, `{"_meta":${this.#meta()}}`));
    for (const target of server.naming.targets)
      if (change.came.includes(target.name) && concerns(this.#filter, target))
        // What the target does not offer was not promised: its items are in the lists that were announced.
        this.#ask(target).catch(() => undefined);
  }

  async *messages(): AsyncGenerator<Message> {
    try {
      yield notificationOf(ACKNOWLEDGED, `{"notifications":${this.#agreed.print()},"_meta":${this.#meta()}}`);
      for (let arrival = await this.#merger.next(); arrival !== undefined; arrival = await this.#merger.next()) {
        if (arrival.kind === "own") yield arrival.message;
        else if (arrival.kind === "message" && arrival.message.method !== undefined) {
          const seen = this.#see(arrival.source, arrival.message);
          if (seen !== undefined) yield seen;
        } else if (this.#isOver(arrival.source)) {
          if (arrival.kind !== "message") throw arrival.kind === "error" ? arrival.error : cutOff();
          this.close();
          const result = `{"resultType":"complete","_meta":${this.#meta()}}`;
          yield responseTo(this.#request.message.id ?? "null", result);
          return;
        }
      }
    } finally {
      this.close();
    }
  }

  /** A client asks again after the end, so the end of one target's part is that of all, unless it may be left out. */
  #isOver(source: string): boolean {
    this.#merger.remove(source);
    const served = this.#serving.delete(source);
    if (this.#server.naming.only !== undefined) return true;
    return served && !this.#server.failOpen;
  }

  #see(name: string, message: Message): Message | undefined {
    const target = this.#server.naming.find(name);
    if (target === undefined) return undefined;
    const view: View<Target> = viewOf(this.#server, this.#request);
    return viewInterim(this.#server, message, target, { view, session: this.#request.session });
  }

  /** JSON text of `_meta` for messages of our own. */
  #meta(): string {
    return `{"${SUBSCRIPTION_ID}":${this.#request.message.id}}`;
  }

  /** Asks a target for its part; one that knows no subscriptions agrees to nothing. @throws McpError, ProxyError */
  async #ask(target: Target): Promise<void> {
    const { message } = this.#request;
    const span = findFilter(message);
    if (span === undefined) return;
    const filter = await this.#withoutAbsent(target);
    if (!concerns(filter, target)) return;
    const own = editMessage(message, [{ ...span, text: printFilter(filter, target) }]);
    const opened = await readAcknowledgement(await sendTo(target, own, this.#request), this.#isAlone());
    if (opened === undefined) return;
    if (this.#agreed.add(opened.acknowledgement, target, viewOf(this.#server, this.#request)))
      this.#serving.add(target.name);
    this.#merger.add(target.name, opened.answer);
  }

  /**
   * Leaves out resources that the target does not have, where rules are configured: targets agree to any, and clients
   * could tell from it that those that are missing in the acknowledgement are hidden. A long filter makes one request at
   * a time.
   */
  async #withoutAbsent(target: Target): Promise<SubscriptionFilter> {
    const wanted = this.#filter.resources.get(target.name);
    if (wanted === undefined || viewOf(this.#server, this.#request).allows === undefined) return this.#filter;
    const present: string[] = [];
    for (const name of wanted)
      if (!(await isAbsentResource(this.#server, this.#request, { target, name }))) present.push(name);
    return withResources(this.#filter, target, present);
  }

  #isAlone(): boolean {
    return this.#server.naming.only !== undefined;
  }
}

/**
 * Reads up to the acknowledgement, which targets send first.
 * @param isAlone the only target has to serve the method; one of several can be without it
 * @returns undefined when the target does not serve the method
 */
async function readAcknowledgement(answer: McpAnswer, isAlone: boolean): Promise<Acknowledged | undefined> {
  if (answer.body !== undefined) {
    const refusal = readMessage(answer.body);
    if ("kind" in refusal && isUnserved(refusal) && !isAlone) return undefined;
    throw refused(answer.status);
  }
  const iterator = iterate(answer.messages);
  for (;;) {
    const { done, value } = await iterator.next();
    if (done === true) throw cutOff();
    if (value.method === ACKNOWLEDGED)
      return { acknowledgement: value, answer: { ...answer, only: undefined, messages: iterator } };
    if (value.kind !== "result" && value.kind !== "error") continue;
    answer.cancel();
    if (isUnserved(value) && !isAlone) return undefined;
    throw refused(200);
  }
}

async function* iterate(messages: McpAnswer["messages"]): AsyncGenerator<Message> {
  yield* messages;
}

function refused(status: number): McpError {
  return new McpError(ERROR_CODES.internal, "the server refused the subscription", {
    status: 500,
    detail: `${status}`,
  });
}

function cutOff(): McpError {
  return new McpError(ERROR_CODES.internal, "the server ended its stream without an answer", { status: 500 });
}
