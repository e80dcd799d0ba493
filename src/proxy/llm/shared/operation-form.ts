/** The interface of another form of an operation that is no chat, such as embeddings, and how two of them follow each other. */
import type { HeaderList } from "../../../lib/header-list.ts";
import type { JsonObject } from "./json.ts";

/** How an operation is spoken in another form than that of the client. */
export interface OperationForm {
  /** @throws ProxyError llm_request_invalid */
  printRequest(body: JsonObject, model: string): JsonObject;
  /**
   * Returns the answer in the form of the client, with its usage.
   * @throws ProxyError llm_response_invalid
   */
  readAnswer(answer: JsonObject, context: OperationAnswer): JsonObject;
}

/** What is known when an answer is read. */
interface OperationAnswer {
  /** The client's body. */
  readonly request: JsonObject;
  readonly model: string;
  /** Headers of the answer. */
  readonly headers: HeaderList;
}

/** @param outer from the client's form @param inner from there to the provider's */
export function chainForms(outer: OperationForm, inner: OperationForm): OperationForm {
  return {
    printRequest: (body, model) => inner.printRequest(outer.printRequest(body, model), model),
    readAnswer(answer, context) {
      const between = outer.printRequest(context.request, context.model);
      return outer.readAnswer(inner.readAnswer(answer, { ...context, request: between }), context);
    },
  };
}
