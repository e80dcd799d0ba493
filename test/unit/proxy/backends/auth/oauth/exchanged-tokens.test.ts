/** How many exchanged tokens one block keeps, whatever clients send. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { TokenCacheSettingsSchema } from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { openTokens } from "../../../../../../src/proxy/backends/auth/oauth/exchanged-tokens.ts";
import { CloudClient } from "../../../../../../src/proxy/backends/auth/shared/cloud-client.ts";
import { Tokens } from "../../../../../../src/proxy/tokens/tokens.ts";
import { makeDeps } from "../../../../../support/gateway/exchange.ts";
import { recordingLog } from "../../../../../support/gateway/silent-log.ts";

const CALLER = { onAbort: (): void => undefined };

function openCache(): { ask: (subject: string) => Promise<string>; calls: string[] } {
  const { log } = recordingLog();
  const calls: string[] = [];
  const callouts = (): never => assert.fail("nothing is called");
  const deps = {
    tokens: new Tokens({ log }),
    callouts,
    expression: makeDeps().expression,
    log,
    environment: {},
    place: "GwBackend default/web",
    block: "block",
    cloud: new CloudClient(callouts),
  };
  const settings = create(TokenCacheSettingsSchema, { maxEntries: 8_192, defaultTtlMs: 300_000 });
  const tokens = openTokens("oauthTokenExchange", settings, deps, 10_000);
  const answer = { tokenType: "Bearer", issuedType: undefined, lifetimeMs: 3_600_000 };
  return {
    calls,
    ask: async (subject) =>
      tokens.get([], subject, CALLER, async () => {
        calls.push(subject);
        return { ...answer, accessToken: `for-${subject}` };
      }),
  };
}

test("10,000 subjects push the first ones out of 8,192 entries, and none gets the token of another", async () => {
  const { ask, calls } = openCache();
  for (let subject = 0; subject < 10_000; subject++) assert.equal(await ask(`s${subject}`), `for-s${subject}`);
  assert.equal(calls.length, 10_000);
  for (let subject = 10_000 - 8_192; subject < 10_000; subject++) await ask(`s${subject}`);
  assert.equal(calls.length, 10_000, "the last 8,192 are kept");
  assert.equal(await ask("s0"), "for-s0");
  assert.equal(calls.length, 10_001, "the first one was pushed out");
});
