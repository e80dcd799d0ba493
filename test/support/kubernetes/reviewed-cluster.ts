/** Starts an API server with our CRDs and our webhook, and functions that ask each of them separately. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { text } from "node:stream/consumers";
import { applyDefaults } from "../../../generated/defaults.ts";
import { KINDS } from "../../../generated/kinds.ts";
import { renew } from "../../../src/admission/certificates.ts";
import { startReviewThreads } from "../../../src/admission/review-threads.ts";
import { startWebhookServer } from "../../../src/admission/server.ts";
import { webhookConfiguration } from "../../../src/admission/webhook-configuration.ts";
import { type ApiServer, startApiServer } from "../../testbed/api-server.ts";
import { defineOurKinds } from "./cluster.ts";
import type { Kind } from "../fixtures/objects/kinds.ts";
import { askServer, byText, type Fault, type ServerVerdict } from "./server-verdict.ts";
import { recordingLog } from "../gateway/silent-log.ts";

export interface ReviewedCluster {
  readonly server: ApiServer;
  /** Asks the API server: schema, rules, and then the webhook. */
  readonly judge: ServerVerdict;
  /** Asks the webhook about an object after the defaults of the API server. */
  webhook(kind: Kind, object: object): Promise<Fault[]>;
  stop(): Promise<void>;
}

const HOST = "127.0.0.1";

export async function startReviewedCluster(): Promise<ReviewedCluster> {
  const server = await startApiServer();
  await defineOurKinds(server);
  const pem = renew(undefined, [HOST], Date.now());
  const { log } = recordingLog();
  const reviews = await startReviewThreads({ log });
  const webhook = await startWebhookServer({
    host: HOST,
    port: 0,
    certificate: pem.leaf,
    review: (body) => reviews.review(body),
    log,
  });
  const url = `https://${HOST}:${webhook.address.port}/validate`;
  const own = KINDS.filter(({ owned }) => owned).map(({ plural }) => plural);
  const configuration = webhookConfiguration("gwproxy", { url }, own, pem.authority.certificate);
  await server.kubectl(["apply", "-f", "-"], JSON.stringify(configuration));
  const judge = askServer(server.kubeconfig);
  const agent = new Agent({ keepAlive: true, ca: pem.authority.certificate });
  return {
    server,
    judge,
    webhook: (kind, object) => review(url, agent, reviewOf(kind, object)),
    stop: async () => {
      judge.close();
      agent.destroy();
      await webhook.stop();
      await reviews.close();
      await server.stop();
    },
  };
}

function reviewOf({ kind, groupKind }: Kind, object: object): object {
  return {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: { uid: "1", operation: "CREATE", kind: { kind }, object: applyDefaults(groupKind, object) },
  };
}

interface Answer {
  readonly response: {
    readonly allowed: boolean;
    readonly status?: { readonly details: { readonly causes: readonly { field: string; message: string }[] } };
  };
}

async function review(url: string, agent: Agent, body: object): Promise<Fault[]> {
  const asked = request(url, { agent, method: "POST", headers: { "content-type": "application/json" } });
  asked.end(JSON.stringify(body));
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  // The response comes from our own webhook, whose unit tests check the shape.
  const { response } = JSON.parse(await text(answer)) as Answer;
  const causes = response.status?.details.causes ?? [];
  if (response.allowed !== (causes.length === 0)) throw new Error("a refusal has causes, and nothing else has");
  return causes.map(({ field, message }) => ({ path: field, message })).sort(byText);
}
