/** Translates `auth.passthrough`: the client's verified token, and where it is written. */
import { create } from "@bufbuild/protobuf";
import { PassthroughCredentialSchema } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { translateLocation } from "../../../policies/shared/authentication.ts";
import type { TranslateKind } from "./auth-kind.ts";

export const translatePassthrough: TranslateKind<"passthrough"> = (_spec, { location }) => ({
  case: "passthrough",
  value: create(PassthroughCredentialSchema, location === undefined ? {} : { location: translateLocation(location) }),
});
