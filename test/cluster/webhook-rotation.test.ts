/** The webhook of a real API server gets another authority and another leaf while reviews go on: none of them fails. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "node:tls";
import { answerReview } from "../../src/admission/answer.ts";
import { ANNOUNCED_MS, Certificates, type Pem, renew } from "../../src/admission/certificates.ts";
import { startWebhookServer } from "../../src/admission/server.ts";
import { validate } from "../../src/admission/validate.ts";
import { webhookConfiguration } from "../../src/admission/webhook-configuration.ts";
import type { Clock } from "../../src/lib/time/clock.ts";
import { defineOurKinds } from "../support/kubernetes/cluster.ts";
import { eventually } from "../support/gateway/process.ts";
import { askServer } from "../support/kubernetes/server-verdict.ts";
import { recordingLog } from "../support/gateway/silent-log.ts";
import { startApiServer } from "../testbed/api-server.ts";

const HOST = "127.0.0.1";

/** The CRD takes it, and the webhook alone refuses it: an answer without these words was not the webhook's. */
const REFUSED = {
  apiVersion: "gwproxy.dev/v1alpha1",
  kind: "GwPolicy",
  metadata: { name: "x", namespace: "default" },
  spec: {
    targetRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "g" }],
    traffic: { authorization: { policy: { matchExpressions: ["request.path =="] } } },
  },
};

function fingerprint(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: HOST, port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

test("certificates are replaced without a restart and without a review that fails", async (t) => {
  const server = await startApiServer();
  t.after(() => server.stop());
  await defineOurKinds(server);

  let stored: Pem = renew(undefined, [HOST], Date.now());
  let turn: () => void = () => assert.fail("nothing waits for the clock");
  let passed = 0;
  // The next turn is taken when the test says so.
  const clock: Clock = {
    now: () => Date.now() + passed,
    after: (_, run) => {
      turn = run;
      return () => undefined;
    },
  };
  const { log } = recordingLog();
  const webhook = await startWebhookServer({
    host: HOST,
    port: 0,
    certificate: stored.leaf,
    review: async (body) => answerReview(body, validate),
    log,
  });
  t.after(() => webhook.stop());
  const { port } = webhook.address;
  const target = { url: `https://${HOST}:${port}/validate` };
  const certificates = new Certificates({
    store: {
      read: () => Promise.resolve(stored),
      write: (pem) => {
        stored = pem;
        return Promise.resolve();
      },
    },
    names: [HOST],
    patchCaBundle: async (pem) => {
      const configuration = JSON.stringify(webhookConfiguration("gwproxy", target, ["gwpolicies"], pem));
      await server.kubectl(["apply", "--server-side", "--force-conflicts", "-f", "-"], configuration);
    },
    clock,
    log,
  });
  webhook.useCertificate(await certificates.start());
  t.after(() => certificates.stop());
  certificates.onRenewal((leaf) => webhook.useCertificate(leaf));
  const takeTurn = async (): Promise<void> => {
    const before = turn;
    turn();
    // The one after it is planned when it is over.
    await eventually(async () => assert.notEqual(turn, before));
  };

  const judge = askServer(server.kubeconfig);
  t.after(() => judge.close());
  const review = async (): Promise<void> => {
    const [fault] = await judge.faultsOf("gwpolicies", REFUSED);
    assert.match(fault?.message ?? "taken", /the expression does not compile/);
  };
  // A new configuration reaches the API server's admission a moment after it is stored.
  await eventually(review);

  const before = await fingerprint(port);
  let reviews = 0;
  let isOver = false;
  const going = (async () => {
    for (; !isOver; reviews++) await review();
  })();
  // Without its key the authority is of no use: another one takes its place.
  const old = stored.authority.certificate;
  stored = { ...stored, authority: { ...stored.authority, key: "" } };
  await takeTurn();
  assert.equal(stored.previousAuthority, old);
  assert.notEqual(stored.authority.certificate, old);
  assert.equal(await fingerprint(port), before, "the API server may not know the new authority yet");
  await takeTurn();
  assert.equal(await fingerprint(port), before, "nor a moment later");
  passed = ANNOUNCED_MS;
  await takeTurn();
  assert.notEqual(await fingerprint(port), before);
  const sofar = reviews;
  await eventually(async () => assert.ok(reviews > sofar + 50, "reviews go on"));
  isOver = true;
  await going;
});
