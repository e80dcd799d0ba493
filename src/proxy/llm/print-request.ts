/**
 * Prints a client's request for a provider: the same object where both speak one format, otherwise through a neutral
 * conversation. The LLM handler uses it.
 */
import { restoreCallIds } from "./conversation/call-id.ts";
import { Losses } from "./conversation/losses.ts";
import { mayHoldMarks, restoreSignatures } from "./conversation/restore-signatures.ts";
import type { Endpoint } from "./call/endpoint.ts";
import type { Exchange } from "../exchange/exchange.ts";
import type { ChatFormat, FormatForm, LlmRequest, PrintedRequest } from "./formats/chat-format.ts";
import { askForUsage } from "./formats/completions/stream-options.ts";
import { ProxyError } from "../exchange/errors.ts";
import { chainForms, type OperationForm } from "./shared/operation-form.ts";
import { printJson } from "./shared/print-json.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import type { ProviderCall } from "./providers/provider.ts";

interface Translation {
  readonly client: ChatFormat;
  readonly provider: ChatFormat;
  /** The form that an operation has at the provider, where it is not the client's. */
  readonly ownForm: OperationForm | undefined;
  readonly endpoint: Pick<Endpoint, "node" | "provider" | "policies">;
  readonly call: ProviderCall;
  /** Headers of the client. */
  readonly headers: HeaderList;
  /** Expressions of the provider's last fields are evaluated in it. */
  readonly exchange: Exchange;
  /** Tags of the model in the catalog. */
  readonly tags: ReadonlySet<string>;
  /** Bytes of the client's body, about. */
  readonly sizeHint: number;
}

export interface ProviderRequest {
  readonly body: Buffer;
  readonly toolNames: ReadonlyMap<string, string> | undefined;
  /** Names of what the provider cannot express. */
  readonly losses: readonly string[];
}

/** @throws ProxyError llm_request_invalid, llm_conversion_unsupported */
export function printProviderRequest(request: LlmRequest, translation: Translation): ProviderRequest {
  const { endpoint, call, headers, exchange, sizeHint } = translation;
  const losses = new Losses();
  const { body, toolNames } = printBody(request, translation, losses);
  if (call.streaming && call.wire === "Completions") askForUsage(body);
  endpoint.provider.adjustBody?.(body, { ...call, headers, losses }, endpoint.node);
  endpoint.policies.finalFields?.apply(body, exchange);
  const isTranslated = translation.client !== translation.provider;
  // Gemini models behind another API made the signatures themselves, and that API may hand them on.
  if (!isTranslated && !call.model.includes("gemini")) restoreCallIds(body);
  // Always printed from the parsed body: of a repeated key the provider could otherwise read another value than we did.
  let printed = printJson(body, { sizeHint, test: isTranslated ? undefined : mayHoldMarks });
  if (printed.hasMatch) {
    restoreSignatures(body, translation.provider.vendor);
    printed = printJson(body, { sizeHint });
  }
  return { body: printed.bytes, toolNames, losses: losses.names };
}

function printBody(
  { body }: LlmRequest,
  { client, provider, ownForm, endpoint, call, tags }: Translation,
  losses: Losses,
): PrintedRequest {
  const { model, streaming } = call;
  if (ownForm !== undefined) return { body: ownForm.printRequest(body, model) };
  if (client === provider) {
    if (provider.namesModel) body["model"] = model;
    return { body };
  }
  if (client.client === undefined || provider.provider === undefined)
    throw new ProxyError("llm_conversion_unsupported");
  const conversation = client.client.readRequest(body, { model, streaming, losses });
  endpoint.policies.markCache?.(conversation, client.name, provider.name);
  return provider.provider.printRequest(conversation, { losses, tags });
}

/** Returns the form of an operation at the provider: from the client's format to the provider's, and to its own form. */
export function operationForm(
  client: ChatFormat,
  provider: ChatFormat,
  own: OperationForm | undefined,
): OperationForm | undefined {
  const form = client === provider ? undefined : client.forms?.[provider.name];
  if (form === undefined) return own;
  return chainForms(form, own ?? withoutHints(form));
}

/** A provider of the plain form may refuse what it does not know. */
function withoutHints({ hints }: FormatForm): OperationForm {
  return {
    printRequest: (body) => Object.fromEntries(Object.entries(body).filter(([name]) => !hints.includes(name))),
    readAnswer: (answer) => answer,
  };
}
