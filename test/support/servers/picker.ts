/**
 * A small, strict endpoint picker (proposal 004 of the inference extension): it reads the whole request before it
 * answers, chooses only among the endpoints that the gateway offers unless a test says otherwise, returns the body, and
 * records which endpoint the gateway says has served.
 */
import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import {
  ProcessingResponseSchema,
  type ImmediateResponseSchema,
  type ProcessingRequest,
} from "../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { answerBody, startProcServer, type ProcAnswer, type ProcOptions, type ProcServer } from "./proc-server.ts";
import type { ProofContext } from "../proofs/prove.ts";

const DESTINATION = "x-gateway-destination-endpoint";

/** A request to the picker. */
export interface Question {
  /** "address:port" of the endpoints that may be chosen. */
  readonly subset: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A list of endpoints, a response in place of the model server's, or undefined for no answer. */
export type PickerAnswer =
  | { readonly to: string; readonly by?: "header" | "metadata"; readonly body?: string }
  | { readonly immediate: MessageInitShape<typeof ImmediateResponseSchema> }
  | undefined;

export interface Picker extends ProcServer {
  /** Endpoints that have served, oldest first. */
  readonly served: readonly string[];
  readonly asked: readonly Question[];
}

export async function startPicker(
  context: Pick<ProofContext, "after">,
  choose: (question: Question) => PickerAnswer,
  options: ProcOptions = {},
): Promise<Picker> {
  const served: string[] = [];
  const asked: Question[] = [];
  const open = new WeakMap<object, { subset: string[]; headers: Record<string, string>; body: string }>();
  const server = await startProcServer(
    context,
    (message, stream) => {
      const { request } = message;
      if (request.case === "responseHeaders") {
        served.push(textAt(message, "envoy.lb", `${DESTINATION}-served`)[0] ?? "nobody");
        return { response: { case: "responseHeaders", value: {} } };
      }
      const known = open.get(stream) ?? { subset: [], headers: {}, body: "" };
      open.set(stream, known);
      if (request.case === "requestHeaders") {
        known.subset = textAt(message, "envoy.lb.subset_hint", `${DESTINATION}-subset`);
        for (const { key, rawValue } of request.value.headers?.headers ?? [])
          known.headers[key] = Buffer.from(rawValue).toString();
        if (!request.value.endOfStream) return undefined;
      } else if (request.case === "requestBody") {
        known.body += Buffer.from(request.value.body).toString();
        if (!request.value.endOfStream) return undefined;
      } else return undefined;
      asked.push(known);
      const [head, ...rest] = answersTo(choose(known), known.body, request.case === "requestBody");
      if (head !== undefined && rest.length > 0) stream.write(create(ProcessingResponseSchema, head));
      return rest[0] ?? head;
    },
    options,
  );
  return { ...server, served, asked };
}

function answersTo(pick: PickerAnswer, body: string, hasBody: boolean): ProcAnswer[] {
  if (pick === undefined) return [];
  if ("immediate" in pick) return [{ response: { case: "immediateResponse", value: pick.immediate } }];
  const header = { header: { key: DESTINATION, rawValue: Buffer.from(pick.to) } };
  const setHeaders = pick.by === "metadata" ? [] : [header];
  const head: ProcAnswer = {
    response: { case: "requestHeaders", value: { response: { headerMutation: { setHeaders } } } },
    ...(pick.by === "header" ? {} : { dynamicMetadata: { "envoy.lb": { [DESTINATION]: pick.to } } }),
  };
  return hasBody ? [head, answerBody("requestBody", Buffer.from(pick.body ?? body), true)] : [head];
}

function textAt({ metadataContext }: ProcessingRequest, group: string, name: string): string[] {
  const entry: JsonObject | undefined = metadataContext?.filterMetadata[group];
  const value = entry?.[name];
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}
