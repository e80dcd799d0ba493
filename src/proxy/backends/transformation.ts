/**
 * `transformation` of a backend: each attempt changes the request as the policies left it, with its credential, and the
 * response before any policy sees it. Changes of the request belong to the call; the exchange stays as it was, so that
 * a retry starts from the same request.
 */
import type { Transformation } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import type { Body } from "../exchange/body.ts";
import type { RoutedExchange, Reply } from "../exchange/exchange.ts";
import { readAway, requestTarget } from "../policies/shared/request-support.ts";
import { captureResponse, replaceResponseBody, responseTarget } from "../policies/shared/response-support.ts";
import { compileTransform, type CompiledTransform } from "../policies/shared/transform-support.ts";
import type { AuthCall, RequestAuth } from "../upstream/auth.ts";
import type { EndpointDeps } from "./handler.ts";

/** A request that is ready to leave, still in the format of the client. */
export interface Outgoing extends Pick<RoutedExchange, "method" | "host" | "hostChoice" | "scheme"> {
  /** Path and query. */
  readonly path: string;
  /** A copy that includes the credential. */
  readonly headers: HeaderList;
  readonly body: Body;
}

export class BackendTransformation {
  readonly #request: CompiledTransform | undefined;
  readonly #response: CompiledTransform | undefined;
  readonly #readsRequestBody: boolean;

  constructor({ request, response }: Transformation, deps: Pick<EndpointDeps, "expression">) {
    this.#request = request === undefined ? undefined : compileTransform(request, "backend", deps);
    this.#response = response === undefined ? undefined : compileTransform(response, "response", deps);
    this.#readsRequestBody = [this.#request, this.#response].some((each) => each?.readsRequestBody === true);
  }

  /**
   * @param auth whose credential the expressions see in its place and may remove
   * @param call that leaves
   */
  async outgoing(exchange: RoutedExchange, auth: RequestAuth | undefined, call: AuthCall): Promise<Outgoing> {
    if (this.#readsRequestBody) await exchange.bufferRequestBody(exchange.requestLimitBytes);
    if (this.#request?.body !== undefined) await readAway(exchange);
    const headers = exchange.requestHeaders.clone();
    const path = auth === undefined ? exchange.target : auth.place(call, headers, exchange.target);
    return this.#changed(exchange, headers, path instanceof Promise ? await path : path);
  }

  /**
   * Edits the exchange, copies the result and restores the exchange, without an `await`: no other code may ever see the
   * credential in the exchange, not even when the client leaves meanwhile.
   * @param authenticated headers and path with the credential
   */
  #changed(exchange: RoutedExchange, authenticated: HeaderList, path: string): Outgoing {
    const { method, target, host, hostChoice, scheme, requestHeaders, requestBody } = exchange;
    const before = requestHeaders.raw.slice();
    try {
      requestHeaders.raw.splice(0, Infinity, ...authenticated.raw);
      exchange.target = path;
      this.#request?.metadata(exchange, exchange);
      this.#request?.headers(requestTarget(exchange), exchange);
      const body = this.#request?.body?.(exchange);
      if (body !== undefined) requestHeaders.remove("content-length");
      return {
        method: exchange.method,
        path: exchange.target,
        host: exchange.host,
        hostChoice: exchange.hostChoice,
        scheme: exchange.scheme,
        headers: requestHeaders.clone(),
        body: body ?? requestBody,
      };
    } finally {
      Object.assign(exchange, { method, target, host, hostChoice, scheme });
      requestHeaders.raw.splice(0, Infinity, ...before);
    }
  }

  async answered(exchange: RoutedExchange, reply: Reply): Promise<void> {
    const transform = this.#response;
    if (transform === undefined) return;
    // After a change of protocol there is no body.
    const isTunnel = reply.tunnel !== undefined;
    const scope = await captureResponse(exchange, reply, transform.readsResponseBody && !isTunnel);
    transform.metadata(exchange, scope);
    transform.headers(responseTarget(reply), scope);
    if (transform.body !== undefined && !isTunnel) replaceResponseBody(reply, transform.body(scope));
  }
}
