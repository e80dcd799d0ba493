/**
 * Runs the services that check requests and results of an MCP backend, in order: each one sees what those before it have
 * changed, and the first that rejects ends the request. The handler compiles them for its place.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import type { HeaderMutation } from "../../../../generated/proto/gwproxy/dev/ext_mcp/ext_mcp_pb.ts";
import type { McpGuardrail } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { McpError, printError } from "../mcp-error.ts";
import { readMessage, type Message } from "../message/message.ts";
import type { Method } from "../methods.ts";
import type { GuardedRequest, GuardedTargets } from "./guarded-request.ts";
import { applyMutation } from "./headers.ts";
import { ParamHeaders } from "./param-headers.ts";
import { Processor, type ProcessorDeps } from "./processor.ts";

/** Returns what guards a request; undefined when no service sees its method. */
export type Guard = (request: {
  readonly method: Method;
  readonly exchange: RoutedExchange;
}) => GuardedRequest | undefined;

/** @returns undefined when no service is configured */
export function compileGuardrails(specs: readonly McpGuardrail[], deps: ProcessorDeps): Guard | undefined {
  if (specs.length === 0) return undefined;
  const processors = specs.map((spec) => new Processor(spec, deps));
  return ({ method, exchange }) => {
    const requests = processors.filter(({ phasesOf }) => method.guards === "both" && phasesOf(method.name).request);
    const results = processors.filter(({ phasesOf }) => phasesOf(method.name).response);
    if (requests.length === 0 && results.length === 0) return undefined;
    return new ChainedGuard(method.name, exchange, { requests, results });
  };
}

interface Chains {
  readonly requests: readonly Processor[];
  readonly results: readonly Processor[];
}

class ChainedGuard implements GuardedRequest {
  readonly #method: string;
  readonly #exchange: RoutedExchange;
  readonly #chains: Chains;
  readonly #mutations: HeaderMutation[] = [];
  #params: ParamHeaders | undefined;

  constructor(method: string, exchange: RoutedExchange, chains: Chains) {
    this.#method = method;
    this.#exchange = exchange;
    this.#chains = chains;
  }

  async checkRequest(message: Message, about: GuardedTargets): Promise<Message> {
    let checked = message;
    for (const processor of this.#chains.requests) {
      const verdict = await processor.checkRequest(this.#check(checked, about));
      if (verdict.headers !== undefined) this.#mutations.push(verdict.headers);
      if (verdict.metadata !== undefined) this.#keep(verdict.metadata);
      checked = verdict.message;
    }
    if (checked !== message) this.#params = new ParamHeaders(this.#exchange.requestHeaders, message, checked);
    return checked;
  }

  async checkResult(message: Message, about: GuardedTargets): Promise<Message> {
    // Errors of targets are not shown to services.
    if (message.kind !== "result") return message;
    let checked = message;
    try {
      for (const processor of this.#chains.results) checked = await processor.checkResult(this.#check(checked, about));
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      return errorMessage(error, message.id);
    }
    return checked;
  }

  editHeaders(headers: HeaderList): void {
    this.#params?.apply(headers);
    for (const mutation of this.#mutations) applyMutation(headers, mutation);
  }

  #check(message: Message, about: GuardedTargets) {
    return { method: this.#method, message, about, exchange: this.#exchange };
  }

  /** Merges metadata into the root "mcpGuardrails"; later values replace earlier ones. */
  #keep(metadata: JsonObject): void {
    const known = this.#exchange.root("mcpGuardrails");
    const before: Iterable<readonly [unknown, unknown]> = known instanceof Map ? known : [];
    this.#exchange.setRoot("mcpGuardrails", new Map<unknown, unknown>([...before, ...Object.entries(metadata)]));
  }
}

function errorMessage(error: McpError, id: string | undefined): Message {
  const message = readMessage(printError(error, id));
  if (!("kind" in message)) throw new Error("a printed error is not a message", { cause: error });
  return message;
}
