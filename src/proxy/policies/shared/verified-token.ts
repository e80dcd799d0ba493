/** The token of the client that a JWT policy has verified, which backends may use though it was removed. */
import type { CredentialLocation } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Secret } from "../../../cel/values.ts";

export class VerifiedToken extends Secret {
  /** Where the policy found it; undefined for the header Authorization. */
  readonly location: CredentialLocation | undefined;

  constructor(text: string, location: CredentialLocation | undefined) {
    super(text);
    this.location = location;
  }
}
