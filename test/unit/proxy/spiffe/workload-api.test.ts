/** The watch of the workload API with a clock of the test; the agent is a real server on a Unix socket. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { WorkloadApi } from "../../../../src/proxy/spiffe/workload-api.ts";
import { recordingLog } from "../../../support/gateway/silent-log.ts";
import { createTrustDomain, issueSvid } from "../../../support/fixtures/svid.ts";
import { testClock, type TestClock } from "../../../support/gateway/test-clock.ts";
import { answerOf, startAgent, type WorkloadAgent } from "../../../support/servers/workload-agent.ts";

const OWN = createTrustDomain("example.org");
const GATE = issueSvid(OWN, "/gate");

interface Watch {
  readonly api: WorkloadApi;
  readonly clock: TestClock;
  readonly lines: readonly string[];
  /** How often there was another identity, or none any more. */
  readonly changes: () => number;
}

function watch(t: TestContext, { endpoint }: Pick<WorkloadAgent, "endpoint">): Watch {
  const clock = testClock(Date.now());
  const { log, lines } = recordingLog();
  let changes = 0;
  const api = new WorkloadApi({ endpoint, log, clock, onChange: () => void changes++ });
  t.after(() => api.close());
  return { api, clock, lines, changes: () => changes };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate);
}

const serialOf = (api: WorkloadApi): string => {
  const current = api.current();
  return typeof current === "string" ? current : current.serialNumber;
};

test("nobody is asked before somebody needs an identity", async (t) => {
  const agent = await startAgent(t, answerOf(GATE, OWN));
  const { api } = watch(t, agent);
  assert.equal(api.dump(), null);
  await api.settled();
  assert.equal(agent.opened, 0);
  api.need();
  await api.settled();
  assert.equal(serialOf(api), GATE.serialNumber);
  assert.equal(agent.opened, 1);
});

test("whoever needs one waits a second for an agent that says nothing, and no longer", async (t) => {
  const agent = await startAgent(t, undefined);
  agent.silence();
  const { api, clock } = watch(t, agent);
  api.need();
  const settled = api.settled();
  await clock.advance(1_000);
  await settled;
  assert.match(serialOf(api), /no identity yet/);
  await until(() => agent.opened === 1);
  await clock.advance(9_000);
  await until(() => /does not answer/.test(serialOf(api)));
  agent.send(answerOf(GATE, OWN));
  await clock.advance(5_000);
  await until(() => serialOf(api) === GATE.serialNumber);
});

test("tries become rarer while the agent is away, and the log says it once", async (t) => {
  const { api, clock, lines } = watch(t, { endpoint: "unix:///nowhere/agent.sock" });
  api.need();
  await api.settled();
  const waits: number[] = [];
  while (waits.length < 10) {
    const told = (): string[] => lines.filter((line) => line.includes("out of reach"));
    await until(() => told().length > waits.length);
    const { wait_ms } = JSON.parse(told().at(-1) as string) as { wait_ms: number }; // as it is logged
    waits.push(wait_ms);
    await clock.advance(wait_ms);
  }
  assert.ok((waits.at(-1) as number) >= 2_500, `${waits.join(" ")}`);
  assert.equal(lines.filter((line) => line.includes('"warn"')).length, 1);
});

test("nonsense leaves what was good before", async (t) => {
  const agent = await startAgent(t, answerOf(GATE, OWN));
  const { api, lines, changes } = watch(t, agent);
  api.need();
  await api.settled();
  agent.send({ svids: [] });
  await until(() => lines.some((line) => line.includes("refused")));
  assert.equal(serialOf(api), GATE.serialNumber);
  assert.equal(changes(), 1);
  assert.match(api.dump()?.fault ?? "", /no usable identity/);
});

test("an identity ends with its certificate, and is then asked for anew", async (t) => {
  const brief = issueSvid(OWN, "/gate", { notAfter: new Date(Date.now() + 1_800_000) });
  const agent = await startAgent(t, answerOf(brief, OWN));
  const { api, clock, changes } = watch(t, agent);
  api.need();
  await api.settled();
  await clock.advance(1_700_000);
  assert.equal(serialOf(api), brief.serialNumber);
  await clock.advance(200_000);
  assert.match(serialOf(api), /expired at/);
  assert.equal(changes(), 2);
  await tries(clock, () => agent.opened > 1);
  const next = issueSvid(OWN, "/gate", { notAfter: new Date(Date.now() + 36_000_000) });
  agent.send(answerOf(next, OWN));
  await tries(clock, () => serialOf(api) === next.serialNumber);
});

/** Lets time pass until the watch has tried again with success. */
async function tries(clock: TestClock, holds: () => boolean): Promise<void> {
  while (!holds()) await clock.advance(100);
}

test("no key and no certificate reach the log or the dump", async (t) => {
  const agent = await startAgent(t, answerOf({ ...GATE, pkcs8: Buffer.concat([GATE.pkcs8, Buffer.from("x")]) }, OWN));
  const { api, lines } = watch(t, agent);
  api.need();
  await api.settled();
  const said = `${lines.join("")}${JSON.stringify(api.dump())}`;
  for (const secret of [GATE.pkcs8.toString("base64").slice(40, 80), GATE.privateKey.split("\n")[1] as string])
    assert.ok(!said.includes(secret));
});
