/** Requests that mean to be read twice, through a gateway to an upstream that reads them once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { listener, rawClient, route, startDataPlane, staticBackend, to } from "../../support/data-plane.ts";
import { startStrictUpstream } from "../../support/strict-upstream.ts";
import { FRAMING } from "./framing.ts";
import { HEADS } from "./heads.ts";
import type { HostileRequest } from "./hostile-request.ts";

const PROBE = "GET /probe HTTP/1.1\r\nHost: a\r\n\r\n";

/** @returns the statuses of the answers, in order */
async function play(port: number, { bytes, closed, ends }: HostileRequest): Promise<number[]> {
  const client = rawClient(port, bytes);
  if (ends === true) client.socket.end();
  let text: string;
  if (closed) text = await client.closed();
  else {
    client.socket.write(PROBE);
    await client.until(/answer \d+ to \/probe$/);
    client.socket.destroy();
    text = client.text().replace(/HTTP\/1\.1 [^]{0,300}to \/probe$/, "");
  }
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}

test("a request that could be read twice is refused, or forwarded in the one way in which it is meant", async (t) => {
  const upstream = await startStrictUpstream(t);
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  t.after(() => plane.proxy.close());
  for (const row of [...FRAMING, ...HEADS]) {
    await t.test(row.name, { timeout: 30_000 }, async () => {
      upstream.take();
      const statuses = await play(plane.port, row);
      // Whatever the row left behind has reached the upstream before this has.
      await rawClient(plane.port, PROBE).until(/probe$/);
      const { requests, faults } = upstream.take();
      const seen = requests.filter(({ target }) => target !== "/probe");
      assert.deepEqual(faults, []);
      assert.deepEqual(statuses, row.statuses);
      assert.deepEqual(
        seen.map(({ bytes }) => bytes.replace(/(?<=\r\nx-(?:request-id|forwarded-port): )[0-9a-f-]+(?=\r\n)/g, "*")),
        row.upstream,
      );
    });
  }
});
