/** Makes the `auth` block of a backend as the translator writes it, for tests that begin at the data plane. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  BackendAuthSchema,
  CredentialSchema,
  type BackendAuth,
  type CredentialLocationSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

export function keyAuth(value: string, location?: MessageInitShape<typeof CredentialLocationSchema>): BackendAuth {
  const credential = create(CredentialSchema, location === undefined ? { value } : { value, location });
  return create(BackendAuthSchema, { kind: { case: "key", value: credential } });
}
