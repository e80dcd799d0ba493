/**
 * Records the steps of one request for all operators whose watch has caught it. DebugTraces creates it when the request
 * arrives; each event is printed once for each kind of operator, with and without the client's credentials.
 */
import { REDACTED } from "../../cel/values.ts";
import type {
  BodyStage,
  DebugMessage,
  DebugSeverity,
  DebugTiming,
  DebugTrace,
  OutgoingHead,
  RequestStage,
  ResponseStage,
} from "../exchange/debug-trace.ts";
import type { Outcome, Reply, ReportedExchange } from "../exchange/exchange.ts";
import { responseRoot } from "../exchange/response-root.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import { maskHeaders, maskQuery, printValue, stateOf, type Masks } from "./state.ts";
import type { Watch } from "./watch.ts";

/** Longest body in an event; the rest is cut. */
const MAX_BODY = 256 * 1024;
/** Fields that the data plane itself sets on the way out, and that are no credentials. */
const OWN_FIELDS: ReadonlySet<string> = new Set(["host", "cdn-loop", "traceparent", "tracestate", "content-length"]);
/** Expressions whose text may be a credential: they name one of the places where clients send them. */
const READS_SECRET = /authorization|cookie|key|token|secret|passw|credential|session/i;

type Snapshot =
  | { readonly type: "requestSnapshot"; readonly stage: RequestStage; readonly requestState: unknown }
  | { readonly type: "responseSnapshot"; readonly stage: ResponseStage; readonly requestState: unknown }
  | { readonly type: "bodySnapshot"; readonly stage: BodyStage; readonly body: string; readonly truncated?: true }
  | {
      readonly type: "requestFinished";
      readonly status: number;
      readonly error: string | null;
      readonly dropped?: number;
    };

export class RequestDebugTrace implements DebugTrace {
  readonly #exchange: ReportedExchange;
  readonly #watches: readonly Watch[];
  readonly #masks: Masks;
  readonly #onOver: () => void;
  readonly #later: (readonly [BodyStage, () => Buffer])[] = [];

  constructor(exchange: ReportedExchange, watches: readonly Watch[], masks: Masks, onOver: () => void) {
    this.#exchange = exchange;
    this.#watches = watches;
    this.#masks = masks;
    this.#onOver = onOver;
    exchange.onDone(this.#finish.bind(this));
  }

  record(message: DebugMessage, { startedAtMs, severity, scope }: DebugTiming = {}): void {
    this.#add(
      message.type === "cel" ? printCel(message) : message,
      startedAtMs,
      severity ?? severityOf(message),
      scope,
    );
  }

  state(only?: ReadonlySet<string>): unknown {
    return stateOf(this.#exchange, this.#masks, only);
  }

  request(stage: RequestStage): void {
    this.#addState((masks) => ({
      type: "requestSnapshot",
      stage,
      requestState: stateOf(this.#exchange, masks),
    }));
  }

  outgoing(stage: RequestStage, { method, path, headers }: OutgoingHead, isAuthenticated: boolean): void {
    this.#addState((masks) => {
      const state = stateOf(this.#exchange, masks);
      const shown = this.#headersOf(headers, masks, isAuthenticated);
      const shownPath = isAuthenticated ? withoutNewQuery(path, this.#exchange.target) : path;
      const pathAndQuery = masks === undefined ? shownPath : maskQuery(shownPath, masks.parameters);
      const request = { method, path: path.split("?", 1)[0], pathAndQuery, headers: shown };
      return { type: "requestSnapshot", stage, requestState: { ...state, request } };
    });
  }

  response(stage: ResponseStage, { status, headers }: Pick<Reply, "status" | "headers">): void {
    const response = responseRoot({ status, headers, body: null, bodyPrefix: null });
    const scope = { root: (name: string) => (name === "response" ? response : this.#exchange.root(name)) };
    this.#addState(
      (masks) => ({ type: "responseSnapshot", stage, requestState: stateOf(scope, masks) }),
      status >= 500 ? "error" : status >= 400 ? "warn" : "info",
    );
  }

  body(stage: BodyStage, body: Buffer): void {
    const isCut = body.length > MAX_BODY;
    this.#add({
      type: "bodySnapshot",
      stage,
      body: (isCut ? body.subarray(0, MAX_BODY) : body).toString("base64"),
      ...(isCut ? { truncated: true as const } : {}),
    });
  }

  bodyLater(stage: BodyStage, read: () => Buffer): void {
    this.#later.push([stage, read]);
  }

  /** Credentials of the gateway are never shown: every field that differs from what policies left is one. */
  #headersOf(headers: HeaderList, masks: Masks | undefined, isAuthenticated: boolean): Record<string, unknown> {
    const shown: Record<string, unknown> = {};
    const { raw } = headers;
    for (let at = 0; at < raw.length; at += 2) {
      const name = (raw[at] as string).toLowerCase();
      const value = raw[at + 1] as string;
      const isNew = !OWN_FIELDS.has(name) && !this.#exchange.requestHeaders.getAll(name).includes(value);
      shown[name] = isAuthenticated && isNew ? REDACTED : value;
    }
    return masks === undefined ? shown : maskHeaders(shown, masks.headers);
  }

  #finish({ status, error }: Outcome): void {
    this.#addBodies();
    for (const watch of this.#watches) {
      const { dropped } = watch;
      const message: Snapshot = {
        type: "requestFinished",
        status,
        error: error ?? null,
        ...(dropped === 0 ? {} : { dropped }),
      };
      watch.finish(
        this.#print(message, undefined, status >= 500 || error !== undefined ? "error" : statusSeverity(status)),
      );
    }
    this.#onOver();
  }

  /** The bodies are known when the last byte has passed. A model's request is shown where it is translated. */
  #addBodies(): void {
    const { requestBody, keptRequest, keptReply, backend } = this.#exchange;
    for (const [stage, read] of this.#later) this.body(stage, read());
    const sent = Buffer.isBuffer(requestBody) ? requestBody : keptRequest;
    if (sent !== undefined && sent.length > 0 && backend?.protocol !== "llm") this.body("final request", sent);
    if (keptReply !== undefined && keptReply.length > 0) this.body("response", keptReply);
  }

  #add(
    message: DebugMessage | Snapshot,
    startedAtMs?: number,
    severity: DebugSeverity = "info",
    scope?: readonly string[],
  ): void {
    const line = this.#print(message, startedAtMs, severity, scope);
    for (const watch of this.#watches) watch.add(line);
  }

  /** Adds an event that contains the state of the request, which is masked for most operators. */
  #addState(make: (masks: Masks | undefined) => Snapshot, severity: DebugSeverity = "info"): void {
    const masks = this.#masks;
    let masked: string | undefined;
    let whole: string | undefined;
    for (const watch of this.#watches)
      watch.add(
        watch.showsSecrets
          ? (whole ??= this.#print(make(undefined), undefined, severity))
          : (masked ??= this.#print(make(masks), undefined, severity)),
      );
  }

  #print(
    message: DebugMessage | Snapshot,
    startedAtMs: number | undefined,
    severity: DebugSeverity,
    scope?: readonly string[],
  ): string {
    const { startedAtMs: zeroMs } = this.#exchange;
    const event = {
      eventStart: startedAtMs === undefined ? null : microseconds(startedAtMs - zeroMs),
      eventEnd: microseconds(performance.now() - zeroMs),
      severity,
      ...(scope === undefined || scope.length === 0 ? {} : { scope }),
      message,
    };
    return JSON.stringify(event);
  }
}

function microseconds(ms: number): number {
  return Math.max(0, Math.round(ms * 1000));
}

function printCel(message: Extract<DebugMessage, { type: "cel" }>): DebugMessage {
  const { expr, result } = message;
  const mayBeSecret = typeof result === "string" || (typeof result === "object" && result !== null);
  return { ...message, result: mayBeSecret && READS_SECRET.test(expr) ? REDACTED : printValue(result) };
}

/** A credential may have been added to the query. */
function withoutNewQuery(path: string, target: string): string {
  const query = path.split("?")[1];
  return query === undefined || query === target.split("?")[1] ? path : `${path.split("?", 1)[0]}?${REDACTED}`;
}

function statusSeverity(status: number): DebugSeverity {
  return status >= 400 ? "warn" : "info";
}

function severityOf(message: DebugMessage): DebugSeverity {
  switch (message.type) {
    case "routeSelection":
      return message.selectedRoute === null ? "error" : "success";
    case "authorizationResult":
      return message.result === "deny" ? "error" : "success";
    case "policy":
      return message.result.type === "apply" ? "success" : "info";
    case "backendCallResult": {
      const { status, error } = message;
      if (error !== null || (status ?? 0) >= 500) return "error";
      return (status ?? 0) >= 400 ? "warn" : "success";
    }
    default:
      return "info";
  }
}
