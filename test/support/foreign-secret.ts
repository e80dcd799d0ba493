/** A reference to a credential that admission takes, since other products may know the kind, and that we cannot follow. */
import assert from "node:assert/strict";
import type { TestGateway } from "./gateway.ts";

/** Members of the reference beside its name, in flow YAML. */
export const FOREIGN = "group: vault.example, kind: Password";

/** The status of the object says so, and nothing was taken for the credential. */
export function namesForeign({ translator }: TestGateway): void {
  const messages = translator.diagnostics().map(({ message }) => message);
  assert.deepEqual(messages, ['unsupported credential kind Password of group "vault.example"']);
}
