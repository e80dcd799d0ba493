/**
 * Answers one AdmissionReview from its bytes. It is a pure function that runs in the threads of the webhook
 * (review-worker.ts).
 */
import { messageOf } from "../lib/errors.ts";
import { MAX_DEPTH, MAX_VALUES } from "./checks/bounds.ts";
import { type JsonBounds, findJsonError } from "./json-bounds.ts";
import { type AdmissionReview, type ValidateObject, readReview, review } from "./review.ts";

export type ReviewAnswer = Verdict | Unanswerable;

interface Verdict {
  readonly kind: "verdict";
  /** The AdmissionReview with its response, as JSON. */
  readonly text: string;
  readonly object: string;
  readonly operation: string;
  readonly allowed: boolean;
}

/** No verdict is possible: the failure policy of the API server refuses the object. */
export interface Unanswerable {
  readonly kind: "unanswerable";
  readonly status: number;
  readonly message: string;
  /** Detail for the log only; undefined when the message is complete. */
  readonly reason?: string;
}

/** The object is nested two levels deep in the review. */
const BOUNDS: JsonBounds = {
  measuredDepth: 3,
  maxDepth: MAX_DEPTH + 2,
  maxValues: 2 * MAX_VALUES,
  maxBytes: 2 * 1024 * 1024,
};
/** Number of bytes from the start of a review that are searched for its uid. */
const HEAD_BYTES = 1024;

/** Never throws; a review that cannot be checked is unanswerable. */
export function answerReview(bytes: Uint8Array, validate: ValidateObject): ReviewAnswer {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const error = findJsonError(body, BOUNDS);
  if (error !== undefined) return denyUnread(body, error.message);
  const parsed = parseJson(body.toString("utf8"));
  if (parsed === undefined) return unanswerable(400, "the body is not JSON");
  const request = readReview(parsed.value);
  if (request === undefined) return unanswerable(400, "not an AdmissionReview of admission.k8s.io/v1");
  try {
    return verdictOf(review(request, validate), request.title, request.operation);
  } catch (error) {
    return unanswerable(500, "the object could not be checked", `${request.title}: ${messageOf(error)}`);
  }
}

export function unanswerable(status: number, message: string, reason?: string): Unanswerable {
  return { kind: "unanswerable", status, message, ...(reason === undefined ? {} : { reason }) };
}

function verdictOf(answer: AdmissionReview, object: string, operation: string): Verdict {
  return { kind: "verdict", text: JSON.stringify(answer), object, operation, allowed: answer.response.allowed };
}

/** Refuses a review without parsing it. The answer must repeat the uid, which is near the start of the body. */
function denyUnread(body: Buffer, message: string): ReviewAnswer {
  const uid = /"uid":\s*"([\w-]{1,64})"/.exec(body.toString("latin1", 0, HEAD_BYTES))?.[1];
  if (uid === undefined) return unanswerable(413, message);
  const violation = { path: "", severity: "error", reason: "FieldValueTooLong", message, suggestion: "" } as const;
  const request = { uid, operation: "CREATE", object: undefined, oldObject: undefined, title: "" };
  return verdictOf(
    review(request, () => [violation]),
    "",
    request.operation,
  );
}

function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
