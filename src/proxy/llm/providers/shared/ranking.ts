/** What providers with a form of their own for rerank share: the documents of a request, and the list of an answer. */
import { ProxyError } from "../../../exchange/errors.ts";
import { countOf, listOf, objectOf, stringOf, type Json, type JsonObject } from "../../shared/json.ts";
import { readBoolean, requireList, requireObject, requireText } from "../../shared/request-fields.ts";

/** Reads `documents`, which are texts or objects with one. @throws ProxyError llm_request_invalid */
export function readDocuments(body: JsonObject): string[] {
  return requireList(body["documents"], "documents").map((document, at) => {
    const path = `documents[${at}]`;
    return typeof document === "string" ? document : requireText(requireObject(document, path)["text"], `${path}.text`);
  });
}

/** A document of a provider's answer. */
interface RankedDocument {
  /** Its place in the request. */
  readonly index: Json | undefined;
  readonly score: Json | undefined;
}

/** Prints a ranking in the form of rerank clients. @throws ProxyError llm_response_invalid for documents that were not sent */
export function printRanking(ranked: readonly RankedDocument[], request: JsonObject, model: string): JsonObject {
  const documents = listOf(request["documents"]);
  const returnsDocuments = readBoolean(request["return_documents"], "return_documents") === true;
  const results = ranked.map((item) => {
    const index = countOf(item.index);
    if (index === undefined || index >= documents.length)
      throw new ProxyError("llm_response_invalid", { detail: "a ranking with a document that was not sent" });
    // Services may leave out a score of the highest value.
    const score = typeof item.score === "number" ? item.score : 1;
    const document = returnsDocuments ? { document: { text: textOf(documents[index]) } } : {};
    return { index, relevance_score: score, ...document };
  });
  return { model, results };
}

function textOf(document: Json | undefined): string {
  return stringOf(document) ?? stringOf(objectOf(document)?.["text"]) ?? "";
}
