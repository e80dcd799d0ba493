/** Rerank on Vertex AI: the ranking service of Discovery Engine, asked in the form that rerank clients share. */
import { ProxyError } from "../../../exchange/errors.ts";
import { objectOf, stringOf, type JsonObject } from "../../shared/json.ts";
import type { OperationForm } from "../../shared/operation-form.ts";
import { readCount, requireText } from "../../shared/request-fields.ts";
import { printRanking, readDocuments } from "../shared/ranking.ts";

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

function readAnswer(answer: JsonObject, { request, model }: { request: JsonObject; model: string }): JsonObject {
  if (!Array.isArray(answer["records"]))
    throw new ProxyError("llm_response_invalid", { detail: "a ranking without a list of records" });
  const ranked = answer["records"].map((item) => {
    const record = objectOf(item);
    return { index: Number(stringOf(record?.["id"]) ?? Number.NaN), score: record?.["score"] };
  });
  return printRanking(ranked, request, model);
}
