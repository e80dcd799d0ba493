/** Rerank on Bedrock: the operation of its agents' runtime, asked in the form that rerank clients share. */
import { ProxyError } from "../../../exchange/errors.ts";
import { objectOf, type JsonObject } from "../../shared/json.ts";
import { invalidRequest, readCount, requireText } from "../../shared/request-fields.ts";
import type { OperationForm } from "../../shared/operation-form.ts";
import { printRanking, readDocuments } from "../shared/ranking.ts";

/** @param region of the models */
export function rerankIn(region: string): OperationForm {
  return {
    printRequest: (body, model) => printRequest(body, arnOf(model, region)),
    readAnswer(answer, { request, model }) {
      const { results } = answer;
      if (!Array.isArray(results))
        throw new ProxyError("llm_response_invalid", { detail: "a ranking without a list of results" });
      const ranked = results.map((item) => {
        const result = objectOf(item);
        return { index: result?.["index"], score: result?.["relevanceScore"] };
      });
      return printRanking(ranked, request, model);
    },
  };
}

function printRequest(body: JsonObject, modelArn: string): JsonObject {
  const documents = readDocuments(body);
  if (documents.length === 0) throw invalidRequest("documents must not be empty");
  const most = readCount(body["top_n"], "top_n") ?? documents.length;
  const numberOfResults = Math.max(1, Math.min(most, documents.length));
  return {
    queries: [{ type: "TEXT", textQuery: { text: requireText(body["query"], "query") } }],
    sources: documents.map((text) => ({
      type: "INLINE",
      inlineDocumentSource: { type: "TEXT", textDocument: { text } },
    })),
    rerankingConfiguration: {
      type: "BEDROCK_RERANKING_MODEL",
      bedrockRerankingConfiguration: { numberOfResults, modelConfiguration: { modelArn } },
    },
  };
}

/** Returns the name of a foundation model as the operation wants it; a client may write it so itself. */
function arnOf(model: string, region: string): string {
  if (model.startsWith("arn:")) return model;
  const partition = region.startsWith("us-gov-") ? "aws-us-gov" : region.startsWith("cn-") ? "aws-cn" : "aws";
  return `arn:${partition}:bedrock:${region}::foundation-model/${model}`;
}
