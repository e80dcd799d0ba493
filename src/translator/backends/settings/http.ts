/**
 * Translates `http` of a backend block: the HTTP version towards the upstream and the timeout of one attempt.
 * `settings.ts` uses it.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendHTTP } from "../../../../generated/types/backend-policies.ts";
import {
  BackendHttpSchema,
  HttpVersion,
  type BackendHttp,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { timerMs } from "../../../lib/time/duration.ts";

export function translateHttp({ version, requestTimeout }: BackendHTTP): BackendHttp {
  return create(BackendHttpSchema, { version: versionOf(version), requestTimeoutMs: timerMs(requestTimeout) });
}

function versionOf(version: BackendHTTP["version"]): HttpVersion {
  if (version === undefined) return HttpVersion.UNSPECIFIED;
  return version === "HTTP1" ? HttpVersion.HTTP1 : HttpVersion.HTTP2;
}
