/** Reads an AdmissionReview (admission.k8s.io/v1) and builds its response from violations. answer.ts uses it. */
import type { Violation } from "./violation.ts";
import { isRecord } from "../lib/is-record.ts";

export type ValidateObject = (object: unknown, old?: unknown) => readonly Violation[];

export interface ReviewRequest {
  readonly uid: string;
  readonly operation: string;
  readonly object: unknown;
  readonly oldObject: unknown;
  readonly title: string;
}

export interface AdmissionReview {
  readonly apiVersion: "admission.k8s.io/v1";
  readonly kind: "AdmissionReview";
  readonly response: {
    readonly uid: string;
    readonly allowed: boolean;
    readonly warnings?: readonly string[];
    readonly status?: {
      readonly status: "Failure";
      readonly code: number;
      readonly reason: "Invalid";
      readonly message: string;
      readonly details: { readonly causes: readonly { reason: string; message: string; field: string }[] };
    };
  };
}

/** Limits at which the API server itself truncates warnings, which it then logs. */
const MAX_WARNINGS = 16;
const MAX_WARNING_CHARACTERS = 256;

/** @returns undefined when the body is not an AdmissionReview of version v1 */
export function readReview(body: unknown): ReviewRequest | undefined {
  if (!isRecord(body) || body["apiVersion"] !== "admission.k8s.io/v1" || body["kind"] !== "AdmissionReview")
    return undefined;
  const { request } = body;
  if (!isRecord(request) || typeof request["uid"] !== "string" || typeof request["operation"] !== "string")
    return undefined;
  const { uid, operation, object, oldObject, kind, name } = request;
  const title = [isRecord(kind) ? kind["kind"] : undefined, name].filter((part) => typeof part === "string").join(" ");
  return { uid, operation, object, oldObject: oldObject ?? undefined, title };
}

export function review(request: ReviewRequest, validate: ValidateObject): AdmissionReview {
  // The content of an object that is being deleted cannot break anything.
  const violations = request.operation === "DELETE" ? [] : validate(request.object, request.oldObject);
  const errors = violations.filter(({ severity }) => severity === "error");
  const warnings = violations.filter(({ severity }) => severity === "warning").map(lineOf);
  return {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    response: {
      uid: request.uid,
      allowed: errors.length === 0,
      ...(warnings.length === 0
        ? {}
        : { warnings: warnings.slice(0, MAX_WARNINGS).map((line) => line.slice(0, MAX_WARNING_CHARACTERS)) }),
      ...(errors.length === 0 ? {} : { status: denialStatus(request.title, errors) }),
    },
  };
}

function denialStatus(title: string, errors: readonly Violation[]): NonNullable<AdmissionReview["response"]["status"]> {
  const lines = errors.map(lineOf);
  const list = lines.length === 1 ? lines[0] : `[${lines.join(", ")}]`;
  const causes = errors.map(({ reason, message, path }) => ({ reason, message, field: path }));
  return {
    status: "Failure",
    code: 422,
    reason: "Invalid",
    message: title === "" ? `${list}` : `${title} is invalid: ${list}`,
    details: { causes },
  };
}

/** Formats a violation as "spec.a: Invalid value: …", followed by the suggestion. */
function lineOf({ path, message, suggestion }: Violation): string {
  const text = path === "" ? message : `${path}: ${message}`;
  return suggestion === "" ? text : `${text} (${suggestion})`;
}
