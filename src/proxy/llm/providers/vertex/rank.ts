/** Rerank on Vertex AI: the ranking service of Discovery Engine, asked in the form that rerank clients share. */
import { ProxyError } from "../../../exchange/errors.ts";
import { countOf, listOf, objectOf, stringOf, type Json, type JsonObject } from "../../json.ts";
import type { OperationForm } from "../provider.ts";
import { readBoolean, readCount, requireList, requireObject, requireText } from "../../request-fields.ts";

export const ranking: OperationForm = { printRequest, readAnswer };

function printRequest(body: JsonObject, model: string): JsonObject {
  const topN = readCount(body["top_n"], "top_n");
  return {
    model,
    query: requireText(body["query"], "query"),
    records: readDocuments(body).map((content, at) => ({ id: String(at), content })),
    ...(topN === undefined ? {} : { topN }),
    ignoreRecordDetailsInResponse: true,
  };
}

function readDocuments(body: JsonObject): string[] {
  return requireList(body["documents"], "documents").map((document, at) => {
    const path = `documents[${at}]`;
    return typeof document === "string" ? document : requireText(requireObject(document, path)["text"], `${path}.text`);
  });
}

function readAnswer(answer: JsonObject, { request, model }: { request: JsonObject; model: string }): JsonObject {
  if (!Array.isArray(answer["records"]))
    throw new ProxyError("llm_response_invalid", { detail: "a ranking without a list of records" });
  const documents = listOf(request["documents"]);
  const returnsDocuments = readBoolean(request["return_documents"], "return_documents") === true;
  const results = answer["records"].map((item) => {
    const record = objectOf(item) ?? {};
    const index = countOf(Number(stringOf(record["id"]) ?? Number.NaN));
    if (index === undefined || index >= documents.length)
      throw new ProxyError("llm_response_invalid", { detail: "a ranking with a record that was not sent" });
    // The service leaves out a score of the highest value.
    const score = typeof record["score"] === "number" ? record["score"] : 1;
    const document = returnsDocuments ? { document: { text: textOf(documents[index]) } } : {};
    return { index, relevance_score: score, ...document };
  });
  return { model, results };
}

function textOf(document: Json | undefined): string {
  return stringOf(document) ?? stringOf(objectOf(document)?.["text"]) ?? "";
}
