/**
 * One service that checks requests and results (`gwproxy.dev.ext_mcp.ExtMcp`). `guardrails.ts` runs them in order. A
 * service that cannot be asked, or whose answer cannot be used, has failed: its failure mode decides.
 */
import { create, type JsonObject } from "@bufbuild/protobuf";
import type { ExternalService, McpGuardrail } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import {
  CheckError_Code as Code,
  ExtMcp,
  McpRequestSchema,
  McpResponseSchema,
  type CheckError,
  type HeaderMutation,
  type McpRequestResult,
  type McpResponseResult,
} from "../../../../generated/proto/gwproxy/dev/ext_mcp/ext_mcp_pb.ts";
import type { CelPhase } from "../../../cel/environments/phases.ts";
import type { Expression } from "../../../cel/expression.ts";
import { CalloutError, type Callout } from "../../callouts/callout.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { jsonOf } from "../../policies/shared/expression-support.ts";
import { ItemScope } from "../item-scope.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import type { Message } from "../message/message.ts";
import { findMember, stringAt, textOf, wholeOf } from "../message/spans.ts";
import type { GuardedTargets } from "./guarded-request.ts";
import { listHeaders, type HeaderChoice } from "./headers.ts";
import { isJson, withPayload } from "./json.ts";
import { compileMethodPatterns, type Phases } from "./method-patterns.ts";

export interface ProcessorDeps {
  readonly expression: (source: string, place: CelPhase) => Expression;
  /** Opens the client of a service. */
  readonly callout: (service: ExternalService | undefined) => Callout;
}

/** A message on its way through the services. */
export interface Check {
  readonly method: string;
  readonly message: Message;
  readonly about: GuardedTargets;
  readonly exchange: RoutedExchange;
}

/** What a service says about a request that may go on. */
export interface RequestVerdict {
  readonly message: Message;
  readonly headers: HeaderMutation | undefined;
  readonly metadata: JsonObject | undefined;
}

export class Processor {
  readonly phasesOf: (method: string) => Phases;
  readonly #service: Callout;
  readonly #failOpen: boolean;
  readonly #metadata: readonly (readonly [name: string, expression: Expression])[];
  readonly #headers: HeaderChoice;

  constructor(spec: McpGuardrail, { expression, callout }: ProcessorDeps) {
    const { service, failOpen, methods, metadata, allowedHeaders, disallowedHeaders } = spec;
    this.phasesOf = compileMethodPatterns(methods);
    this.#service = callout(service);
    this.#failOpen = failOpen;
    this.#headers = { allowed: new Set(allowedHeaders), disallowed: new Set(disallowedHeaders) };
    this.#metadata = Object.entries(metadata?.expressions ?? {}).map(([name, text]) => [name, expression(text, "mcp")]);
  }

  /** @throws McpError when the request must not go on */
  async checkRequest(check: Check): Promise<RequestVerdict> {
    const { method, message, about, exchange } = check;
    const { bytes, payload } = message;
    // A list goes to several targets, none of which has the names that the client sent.
    const params = about.item === undefined ? undefined : payload;
    const request = create(McpRequestSchema, {
      serviceNames: [...about.targets],
      method,
      metadataContext: this.#context(check),
      headers: listHeaders(exchange, this.#headers),
      ...(params === undefined ? {} : { mcpRequest: bytes.subarray(params.start, params.end) }),
    });
    const answer = await this.#ask(exchange, () => this.#service.unary(ExtMcp.method.checkRequest, request, exchange));
    const unchanged = { message, headers: answer?.headerMutation, metadata: answer?.metadata };
    const changed = this.#read(answer, check);
    // What concerns several targets stays as the client sent it.
    return changed === undefined || about.item === undefined ? unchanged : { ...unchanged, message: changed };
  }

  /** @returns the result to send in its place @throws McpError when the client must not get it */
  async checkResult(check: Check): Promise<Message> {
    const { method, message, about, exchange } = check;
    const { start, end } = message.payload ?? message.whole;
    const request = create(McpResponseSchema, {
      serviceNames: [...about.targets],
      method,
      metadataContext: this.#context(check),
      mcpResponse: message.bytes.subarray(start, end),
    });
    const answer = await this.#ask(exchange, () => this.#service.unary(ExtMcp.method.checkResponse, request, exchange));
    return this.#read(answer, check) ?? message;
  }

  /** A value that cannot be computed, or that JSON cannot hold, is left out. */
  #context({ exchange, about }: Check): JsonObject {
    const scope = new ItemScope(exchange, about.item);
    const entries = this.#metadata.flatMap(([name, expression]) => {
      const value = jsonOf(expression, scope);
      return value === undefined ? [] : [[name, value] as const];
    });
    return Object.fromEntries(entries);
  }

  /** @returns undefined when the service failed and the failure mode lets the message pass */
  async #ask<Answer>(exchange: RoutedExchange, call: () => Promise<Answer>): Promise<Answer | undefined> {
    const { invalidReason } = this.#service;
    if (invalidReason !== undefined) throw failed(invalidReason);
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof CalloutError)) throw error;
      this.#fail(exchange, error.detail ?? error.message, error.misconfigured);
      return undefined;
    }
  }

  /**
   * @returns the message to send in place of the checked one; undefined when it stays as it is
   * @throws McpError when the service rejects it, or failed
   */
  #read(answer: McpRequestResult | McpResponseResult | undefined, { message, exchange }: Check): Message | undefined {
    switch (answer?.result.case) {
      case "error":
        throw rejected(answer.result.value);
      case "mutated": {
        const changed = withPayload(message, answer.result.value);
        if (changed === undefined) this.#fail(exchange, "the service answered with something else than a JSON object");
        return changed;
      }
      case undefined:
        if (answer !== undefined) this.#fail(exchange, "the service answered without a result");
        return undefined;
      case "pass":
        return undefined;
    }
  }

  /** @throws McpError unless the failure mode lets the message pass, which no mistake in the configuration does */
  #fail(exchange: RoutedExchange, detail: string, isMisconfigured = false): void {
    if (!this.#failOpen || isMisconfigured) throw failed(detail);
    exchange.addLogField("mcpGuardrails", "failed open");
  }
}

function failed(detail: string): McpError {
  return new McpError(ERROR_CODES.internal, "a guardrail failed", { detail });
}

const CODES: Readonly<Record<Code, number>> = {
  [Code.UNKNOWN]: ERROR_CODES.internal,
  [Code.PERMISSION_DENIED]: -32_001,
  [Code.RESOURCE_EXHAUSTED]: -32_003,
  [Code.INVALID]: ERROR_CODES.invalidRequest,
};

/** A service may give the member `data` of the error, or the whole error object, which then counts. */
function rejected({ code, reason, mcpError }: CheckError): McpError {
  const bytes = mcpError === undefined || !isJson(mcpError) ? undefined : Buffer.from(mcpError);
  const explicit = bytes === undefined ? undefined : readErrorObject(bytes);
  if (explicit !== undefined) return explicit;
  const text = reason === "" ? "rejected by a guardrail" : reason;
  const data = bytes === undefined ? {} : { data: bytes.toString() };
  return new McpError(CODES[code] ?? ERROR_CODES.internal, text, data);
}

function readErrorObject(bytes: Buffer): McpError | undefined {
  const whole = wholeOf(bytes);
  const code = findMember(bytes, whole, "code");
  const text = stringAt(bytes, whole, "message");
  const number = code === undefined ? Number.NaN : Number(textOf(bytes, code));
  if (!Number.isSafeInteger(number) || text === undefined) return undefined;
  const data = findMember(bytes, whole, "data");
  return new McpError(number, text, data === undefined ? {} : { data: textOf(bytes, data) });
}
