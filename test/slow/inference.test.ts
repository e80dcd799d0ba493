/**
 * InferencePools with real parts: an API server, our controller and data plane as processes, and the reference endpoint
 * picker of the extension, which follows the same API server and reads the queues of simulated model servers.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ChatClient, withChatLoad, type Chat, type ChatAnswer } from "../support/clients/chat-load.ts";
import { freePort, freePorts } from "../support/fixtures/free-ports.ts";
import { documents, GATEWAY } from "../support/gateway/gateway.ts";
import { eventually, type GwproxyProcess } from "../support/gateway/process.ts";
import { startCluster, startController, startPlane } from "../support/kubernetes/cluster.ts";
import { pickerCrds } from "../support/kubernetes/gateway-api-crds.ts";
import { ModelPods } from "../support/kubernetes/model-pods.ts";
import { contextOf, type ProofContext } from "../support/proofs/prove.ts";
import { ANTHROPIC_KEY, startAnthropic, type AnthropicServer } from "../support/servers/llm/anthropic.ts";
import { startReferencePicker, type ReferencePicker } from "../testbed/endpoint-picker.ts";

/** A chat goes to the pool itself with this field, and to the provider in front of the pool without it. */
const DIRECT = { "x-way": "direct" };
const CLIENTS = 16;
/** What replicas say. */
const REPLICA = /^127\.0\.1\.\d+:\d+ says hello\.$/;

/** The Service of the picker leads to a name of the machine itself: an API server takes no address of loopback there. */
function poolObjects(port: number, picker: number, vendor: number): string {
  return documents(
    `apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: llama}
spec:
  selector: {matchLabels: {app: llama}}
  targetPorts: [{number: ${port}}]
  endpointPickerRef: {name: picker, port: {number: 9002}, failureMode: FailClose}`,
    `apiVersion: v1
kind: Service
metadata: {name: picker}
spec: {ports: [{name: grpc, port: 9002, appProtocol: http2}]}`,
    `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: picker, labels: {kubernetes.io/service-name: picker}}
addressType: FQDN
ports: [{name: grpc, port: ${picker}}]
endpoints: [{addresses: [picker.localhost]}]`,
    `apiVersion: inference.networking.x-k8s.io/v1alpha2
kind: InferenceObjective
metadata: {name: batch}
spec: {priority: -1, poolRef: {group: inference.networking.k8s.io, name: llama}}`,
    `apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: chat}
spec:
  ai:
    groups:
      - providers:
          - name: pool
            custom:
              formats: [{type: Completions}]
              backendRef: {group: inference.networking.k8s.io, kind: InferencePool, name: llama}
      - providers:
          - {name: vendor, llme: {model: claude}, host: 127.0.0.1, port: ${vendor}, policies: {auth: {key: ${ANTHROPIC_KEY}}}}
  policies: {health: {unhealthyCondition: "response.code in [429, 503]", eviction: {consecutiveFailures: 1, duration: 1s}}}`,
    `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules:
    - name: direct
      matches: [{headers: [{name: x-way, value: direct}]}]
      backendRefs: [{group: inference.networking.k8s.io, kind: InferencePool, name: llama}]
    - name: provider
      backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: chat}]`,
    `apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: provider}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web, sectionName: provider}]
  traffic:
    retry: {attempts: 1, codes: [429, 503]}
    rateLimit:
      conditional:
        - condition: '"x-user" in request.headers'
          policy: {local: [{tokens: 1000, unit: Hours, key: 'request.headers["x-user"]'}]}`,
  );
}

interface Setup {
  readonly picker: ReferencePicker;
  readonly pods: ModelPods;
  readonly vendor: AnthropicServer;
  readonly client: ChatClient;
  readonly plane: GwproxyProcess;
  setFailureMode(mode: "FailOpen" | "FailClose"): Promise<void>;
}

async function setUp(context: ProofContext): Promise<Setup> {
  const server = await startCluster(context);
  await server.kubectl(["apply", "-f", await pickerCrds()]);
  await server.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
  const vendor = await startAnthropic(context);
  vendor.answer = { text: "The vendor says hello." };
  const picker = await startReferencePicker(context, server.kubeconfig);
  const [port = 0, xds = 0] = await freePorts(2);
  await startController(context, server, xds, { more: ["--enable-inference"] });
  const plane = startPlane(context, xds);
  const modelPort = await freePort();
  const gateway = GATEWAY.replace("port: 8080", `port: ${port}`);
  await server.kubectl(["apply", "-f", "-"], documents(gateway, poolObjects(modelPort, picker.port, vendor.port)));
  await plane.printed(`listening on 127.0.0.1:${port} for Gateway default/gw`);
  const client = new ChatClient(`http://127.0.0.1:${port}`, CLIENTS);
  context.after(() => client.close());
  const setFailureMode = async (failureMode: "FailOpen" | "FailClose"): Promise<void> => {
    const patch = JSON.stringify({ spec: { endpointPickerRef: { failureMode } } });
    await server.kubectl(["patch", "inferencepool", "llama", "--type=merge", "-p", patch]);
  };
  return { picker, pods: new ModelPods(context, server.kubeconfig, modelPort), vendor, client, plane, setFailureMode };
}

test("a gateway in front of the reference picker", async (t) => {
  const { picker, pods, vendor, client, plane, setFailureMode } = await setUp(contextOf(t));
  const known = (): Promise<void> => picker.knows(pods.queues());
  const nameOf = (pod: string): string => pods.servers.get(pod)?.name ?? "";
  const setQueue = (pod: string, length: number): void => {
    const server = pods.servers.get(pod);
    if (server !== undefined) server.queue = length;
  };
  const one = await pods.add();
  const other = await pods.add();
  await known();
  await eventually(async () => assert.equal((await client.ask({ headers: DIRECT })).status, 200));

  await t.test(
    "each of 10,000 requests, streams too, is answered by the replica that the picker has named",
    async () => {
      const [phases, perPhase] = [8, 1_250];
      const answered = new Map<string, ChatAnswer>();
      for (let phase = 0; phase < phases; phase++) {
        const [short, long] = phase % 2 === 0 ? [one, other] : [other, one];
        setQueue(short, 1);
        setQueue(long, 4);
        await known();
        let made = 0;
        const ask = async (): Promise<void> => {
          while (made < perPhase) {
            const answer = await client.ask(mixed(made++));
            answered.set(answer.requestId, answer);
            assert.equal(answer.text, `${nameOf(short)} says hello.`, "the shorter queue has it");
          }
        };
        await Promise.all(Array.from({ length: CLIENTS }, ask));
      }
      assert.equal(answered.size, phases * perPhase);
      // What processes print may be behind their answers.
      const ids = [...answered.keys()];
      await eventually(async () => assert.ok(ids.every((id) => picker.choices.has(id))));
      const logged = await eventually(async () => {
        const endpoints = endpointsOf(plane);
        assert.equal(ids.filter((id) => !endpoints.has(id)).length, 0);
        return endpoints;
      });
      const wrong = ids
        .map((id) => [answered.get(id)?.text, picker.choices.get(id)?.[0], logged.get(id)])
        .filter(([text, named, logged]) => text !== `${named} says hello.` || logged !== named);
      assert.deepEqual(wrong, []);
    },
  );

  await t.test("pods that come and go under load cost no request", async () => {
    setQueue(one, 0);
    setQueue(other, 0);
    const seen: string[] = [];
    const answers = await withChatLoad(client, { clients: CLIENTS, chat: mixed }, async (load) => {
      for (let turn = 0; turn < 6; turn++) {
        seen.push(nameOf(await pods.add()));
        await known();
        const [leaver = ""] = pods.servers.keys();
        await pods.terminate(leaver);
        const { [leaver]: _, ...rest } = pods.queues();
        await picker.knows(rest);
        await load.turned();
        await pods.end(leaver);
        await load.turned();
      }
    });
    assert.deepEqual(astray(answers), []);
    const by = new Set(answers.map(({ text = "" }) => text.split(" ")[0]));
    assert.ok(
      seen.every((name) => by.has(name)),
      "each that came has served",
    );
  });

  await t.test("where the replica that the picker names first is gone, the second one answers", async () => {
    const [first = "", second = ""] = pods.servers.keys();
    setQueue(second, 4);
    await known();
    pods.crash(first);
    // What is on a connection when it is cut may have been read, and is not repeated; a new connection is refused.
    await eventually(async () => {
      const answers = await Promise.all(Array.from({ length: 40 }, (_, at) => client.ask(mixed(at))));
      assert.deepEqual([...new Set(answers.map(({ text }) => text))], [`${nameOf(second)} says hello.`]);
      assert.ok(answers.every(({ requestId }) => picker.choices.get(requestId)?.[0] === nameOf(first)));
    });
    await pods.remove(first);
    await pods.add();
    await known();
  });

  await t.test("a picker that sheds gives the request to the vendor, which is counted once", async () => {
    for (const pod of pods.servers.keys()) setQueue(pod, 10);
    await known();
    const batch = { "x-gateway-inference-objective": "batch" };
    assert.equal((await client.ask({ headers: { ...DIRECT, ...batch } })).status, 429);
    const before = vendor.seen.length;
    for (const stream of [false, true]) {
      const headers = { ...batch, "x-user": `shed-${stream}` };
      const remaining: number[] = [];
      for (let asked = 0; asked < 3; asked++) {
        const answer = await client.ask({ stream, headers });
        assert.deepEqual([answer.status, answer.text], [200, "The vendor says hello."], answer.body);
        remaining.push(Number(answer.headers["x-ratelimit-remaining"]));
      }
      assert.deepEqual(remaining, [1000, 973, 946], "each has cost what the vendor says, and the pool nothing");
    }
    assert.equal(vendor.seen.length - before, 6);
    for (const pod of pods.servers.keys()) setQueue(pod, 0);
    await known();
    await eventually(async () => assert.match((await client.ask()).text ?? "", REPLICA));
  });

  await t.test(
    "a picker that is killed closes the pool, or opens it as the pool says, and is followed again",
    async () => {
      await picker.kill();
      await eventually(async () => {
        const { status, body } = await client.ask({ headers: DIRECT });
        assert.deepEqual([status, body], [503, "the endpoint picker failed"]);
      });
      const { status, text } = await client.ask();
      assert.deepEqual([status, text], [200, "The vendor says hello."], "the next provider serves");
      await setFailureMode("FailOpen");
      await eventually(async () => assert.equal((await client.ask({ headers: DIRECT })).status, 200));
      const chat = { clients: CLIENTS, chat: (number: number): Chat => ({ ...mixed(number), headers: DIRECT }) };
      const answers = await withChatLoad(client, chat, async (load) => {
        await load.turned();
        const all = new Set(load.answers.map(({ text }) => text));
        assert.equal(all.size, pods.servers.size, "own balancing uses each replica");
        picker.start();
        await known();
        await eventually(async () => {
          const { requestId } = await client.ask({ headers: DIRECT });
          assert.ok(picker.choices.has(requestId));
        });
        await load.turned();
        await picker.kill();
        await load.turned();
      });
      assert.deepEqual(astray(answers), []);
      await setFailureMode("FailClose");
      picker.start();
      await known();
    },
  );

  await t.test("when the last replica is gone the vendor serves, and the pool again when one is back", async () => {
    for (const pod of pods.servers.keys()) {
      await pods.terminate(pod);
      await pods.end(pod);
    }
    await eventually(async () => assert.equal((await client.ask({ headers: DIRECT })).status, 503));
    for (const stream of [false, true]) assert.equal((await client.ask({ stream })).text, "The vendor says hello.");
    await pods.add();
    await known();
    await eventually(async () => assert.match((await client.ask()).text ?? "", REPLICA));
  });
});

/** Those that no replica has answered: the vendor, or an error. */
function astray(answers: readonly ChatAnswer[]): readonly (readonly [number, string])[] {
  return answers.filter(({ text }) => !REPLICA.test(text ?? "")).map(({ status, body }) => [status, body]);
}

/** Every second chat is streamed; two of four go to the pool itself. */
function mixed(number: number): Chat {
  return { stream: number % 2 === 1, headers: number % 4 < 2 ? DIRECT : {} };
}

/** The endpoint of each request, as the access log has it. */
function endpointsOf(plane: GwproxyProcess): Map<string, string> {
  const lines = plane.output().matchAll(/\srequest\.id=(\S+) .* inferencepool\.selected_endpoint=(\S+)/g);
  return new Map([...lines].map(([, id = "", endpoint = ""]) => [id, endpoint]));
}
