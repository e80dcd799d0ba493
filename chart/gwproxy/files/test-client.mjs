// Runs in the pod of `helm test`: finds the Service of the test's Gateway and expects its redirect, for two minutes.
import { readFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token";
const { KUBERNETES_SERVICE_HOST: api = "", KUBERNETES_SERVICE_PORT: port = "443", SERVICE: service = "" } = process.env;
const bracket = (host) => (isIPv6(host) ? `[${host}]` : host);

async function attempt() {
  const headers = { authorization: `Bearer ${(await readFile(TOKEN, "utf8")).trim()}` };
  const signal = AbortSignal.timeout(5_000);
  const found = await fetch(`https://${bracket(api)}:${port}${service}`, { headers, signal });
  if (!found.ok) throw new Error(`the Service of the Gateway: ${found.status} ${await found.text()}`);
  const { clusterIP } = (await found.json()).spec;
  const answer = await fetch(`http://${bracket(clusterIP)}:8080/hello`, { redirect: "manual", signal });
  const location = answer.headers.get("location");
  if (answer.status !== 302 || !location?.startsWith("http://gwproxy.example.com"))
    throw new Error(`the Gateway answered ${answer.status} with location ${location}`);
  return `the Gateway at ${clusterIP} answered 302 with location ${location}`;
}

const until = Date.now() + 120_000;
for (;;) {
  try {
    console.log(await attempt());
    break;
  } catch (error) {
    if (Date.now() > until) {
      console.error(error.cause === undefined ? error.message : `${error.message}: ${error.cause}`);
      process.exit(1);
    }
    await sleep(500);
  }
}
