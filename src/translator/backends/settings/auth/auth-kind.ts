/** The interface of a translator of one kind of `auth`, and the value that stands in for what cannot be resolved. */
import { create } from "@bufbuild/protobuf";
import type { BackendAuth as ApiAuth } from "../../../../../generated/types/backend-auth.ts";
import {
  UnresolvedCredentialSchema,
  type BackendAuth,
} from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Report } from "../../../shared/report.ts";
import type { SettingsContext } from "../context.ts";

export interface AuthContext extends SettingsContext {
  /** Takes paths relative to the member that the kind is named after. */
  readonly report: Report;
}

export type Kind = Exclude<BackendAuth["kind"], { case: undefined }>;

/** @returns undefined for a member that counts as absent */
export type TranslateKind<K extends keyof ApiAuth> = (
  spec: NonNullable<ApiAuth[K]>,
  auth: ApiAuth,
  context: AuthContext,
) => Kind | undefined;

/** Reports what is wrong, and returns the kind with which every request fails: nothing may take the place of `auth`. */
export function unresolved(report: Report, path: string, reason: string): Kind {
  report(path, reason);
  return { case: "unresolved", value: create(UnresolvedCredentialSchema, { reason }) };
}
