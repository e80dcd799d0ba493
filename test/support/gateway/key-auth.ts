/** Makes and compiles `auth` blocks as the translator writes them, for tests that begin at the data plane. */
import assert from "node:assert/strict";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  BackendAuthSchema,
  CredentialSchema,
  type BackendAuth,
  type CredentialLocationSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { compileExpression } from "../../../src/cel/compile/compile-expression.ts";
import { environmentOf } from "../../../src/cel/environments/phases.ts";
import { AuthCompiler } from "../../../src/proxy/backends/auth/index.ts";
import { Tokens } from "../../../src/proxy/tokens/tokens.ts";
import type { RequestAuth } from "../../../src/proxy/upstream/auth.ts";
import { recordingLog } from "./silent-log.ts";

export function keyAuth(value: string, location?: MessageInitShape<typeof CredentialLocationSchema>): BackendAuth {
  const credential = create(CredentialSchema, location === undefined ? { value } : { value, location });
  return create(BackendAuthSchema, { kind: { case: "key", value: credential } });
}

/** Compiles a block that fetches nothing. */
export function compileAuth(message: BackendAuth | undefined): RequestAuth | undefined {
  return compiler.compile(message);
}

const refused = (): never => assert.fail("nothing is fetched");
const { log } = recordingLog();
const compiler = new AuthCompiler({
  tokens: new Tokens({ log }),
  callouts: () => ({ open: refused, openTarget: refused }),
  expression: (source, phase) => compileExpression(source, environmentOf(phase)),
  log,
  environment: process.env,
});
