/** Bodies on their way: they arrive as they come, and whoever is slow holds the other side back. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as send, type IncomingMessage } from "node:http";
import { test } from "node:test";
import {
  listener,
  rawClient,
  route,
  startDataPlane,
  staticBackend,
  to,
  type DataPlane,
} from "../../support/gateway/data-plane.ts";
import { settled } from "../../support/gateway/settled.ts";
import { startRawUpstream, startUpstream } from "../../support/servers/upstream.ts";

async function planeTo(port: number): Promise<DataPlane> {
  return startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", port)]);
}

test("an event stream arrives event by event, before the upstream has ended it", async () => {
  let more: (() => void) | undefined;
  const upstream = await startUpstream((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: 1\n\n");
    more = () => response.end("data: 2\n\n");
  });
  const plane = await planeTo(upstream.port);
  const client = rawClient(plane.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  try {
    await client.until(/data: 1/);
    assert.doesNotMatch(client.text(), /data: 2/);
    more?.();
    await client.until(/data: 2\n\n\r\n0\r\n\r\n$/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("the head of a stream arrives before its first event", async () => {
  let first: (() => void) | undefined;
  const upstream = await startUpstream((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    first = () => response.end("data: 1\n\n");
  });
  const plane = await planeTo(upstream.port);
  const client = rawClient(plane.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  try {
    await client.until(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n$/);
    first?.();
    await client.until(/\r\n\r\n9\r\ndata: 1\n\n\r\n0\r\n\r\n$/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("a slow client holds the upstream back and still gets every byte", async () => {
  const size = 64 * 1024 * 1024;
  let written = 0;
  const upstream = await startUpstream((_request, response) => {
    const chunk = Buffer.alloc(65_536, 7);
    const pump = (): void => {
      while (written < size) {
        written += chunk.length;
        if (!response.write(chunk)) {
          response.once("drain", pump);
          return;
        }
      }
      response.end();
    };
    pump();
  });
  const plane = await planeTo(upstream.port);
  const outgoing = send({ port: plane.port, host: "127.0.0.1" });
  outgoing.end();
  try {
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    response.pause();
    // Nobody reads, so the upstream must come to a halt.
    await settled(() => written);
    assert.ok(written < size, `the upstream could write ${written} bytes that nobody read`);
    let received = 0;
    response.on("data", (chunk: Buffer) => (received += chunk.length)).resume();
    await once(response, "end");
    assert.equal(received, size);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("large answers that are read at the same time, late or not to the end, never mix", async () => {
  const size = 24 * 1024 * 1024;
  const upstream = await startUpstream(({ url = "/0" }, response) => {
    // Known length, and chunks.
    if (url.endsWith("2") || url.endsWith("4")) response.setHeader("content-length", size);
    const piece = Buffer.alloc(65_536, url.slice(-1));
    let left = size;
    const pump = (): void => {
      while (left > 0) {
        left -= piece.length;
        if (!response.write(piece)) return void response.once("drain", pump);
      }
      response.end();
    };
    pump();
  });
  const plane = await planeTo(upstream.port);
  const read = async (letter: string, from: Promise<unknown>, enough = size): Promise<number> => {
    const outgoing = send({ port: plane.port, host: "127.0.0.1", path: `/${letter}`, agent: false });
    outgoing.end();
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    await from;
    let bytes = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      const other = chunk.findIndex((byte) => byte !== letter.charCodeAt(0));
      assert.equal(other, -1, `bytes of another answer in that of ${letter}`);
      // Leaves in the middle: what was on its way to it must not be used too early.
      if (bytes >= enough) break;
    }
    return bytes;
  };
  try {
    const now = Promise.resolve();
    const early = Promise.all([read("3", now), read("4", now), read("5", now, size / 3)]);
    // Until then as much of them as the system does not take is held in the gateway.
    const late = Promise.all([read("1", early), read("2", early)]);
    assert.deepEqual((await early).slice(0, 2), [size, size]);
    assert.deepEqual(await late, [size, size]);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("a slow upstream holds the client back and still gets every byte", async () => {
  const size = 64 * 1024 * 1024;
  let begin: (() => void) | undefined;
  const upstream = await startUpstream((request, response) => {
    let received = 0;
    begin = () => request.on("data", (chunk: Buffer) => (received += chunk.length)).resume();
    request.on("end", () => response.end(String(received)));
  });
  const plane = await planeTo(upstream.port);
  const outgoing = send({ port: plane.port, host: "127.0.0.1", method: "POST" });
  try {
    let written = 0;
    let blocked = false;
    const chunk = Buffer.alloc(65_536, 7);
    const pump = (): void => {
      while (written < size) {
        written += chunk.length;
        if (!outgoing.write(chunk)) {
          blocked = true;
          outgoing.once("drain", pump);
          return;
        }
      }
      outgoing.end();
    };
    pump();
    // A client that nobody reads from must come to a halt, once the upstream has its request.
    await settled(() => (begin === undefined ? 0 : written));
    assert.ok(blocked && written < size, `the client could write ${written} bytes that nobody read`);
    begin?.();
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    let text = "";
    response.setEncoding("utf8").on("data", (part: string) => (text += part));
    await once(response, "end");
    assert.equal(text, String(size));
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("a client that goes away takes its upstream request with it, before and after the head", async () => {
  for (const early of [true, false]) {
    let gone: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => {
      gone = resolve;
    });
    let arrived: () => void = () => undefined;
    const reached = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const upstream = await startUpstream((_request, response) => {
      response.on("close", gone);
      if (!early) response.write("part");
      arrived();
    });
    const plane = await planeTo(upstream.port);
    const client = rawClient(plane.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    try {
      await reached;
      if (!early) await client.until(/part/);
      client.socket.destroy();
      await closed;
    } finally {
      plane.proxy.close();
      await upstream.close();
    }
  }
});

test("an upstream that breaks off cuts the answer instead of ending it", async () => {
  const heads = ["content-length: 100\r\n\r\npart", "transfer-encoding: chunked\r\n\r\n4\r\npart\r\n"];
  for (const head of heads) {
    const upstream = await startRawUpstream((socket) => {
      socket.once("data", () => socket.write(`HTTP/1.1 200 OK\r\n${head}`, () => setImmediate(() => socket.destroy())));
    });
    const plane = await planeTo(upstream.port);
    const client = rawClient(plane.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    try {
      const text = await client.closed();
      assert.doesNotMatch(text, /0\r\n\r\n$/);
      await assert.rejects(fetch(plane.url).then((response) => response.text()));
    } finally {
      plane.proxy.close();
      await upstream.close();
    }
  }
});

test("a client waits for 100 Continue until somebody reads the body", async () => {
  const upstream = await startUpstream((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => (text += part));
    request.on("end", () => response.end(text));
  });
  const plane = await planeTo(upstream.port);
  const client = rawClient(
    plane.port,
    "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
  );
  try {
    await client.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
    client.socket.write("hi");
    await client.until(/200 OK[^]*hi$/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("trailers pass in both directions", async () => {
  const upstream = await startUpstream((request, response) => {
    request.resume();
    request.on("end", () => {
      response.writeHead(200, { trailer: "x-sum" });
      response.write("x");
      response.addTrailers({ "x-sum": `${request.trailers["x-in"]}` });
      response.end();
    });
  });
  const plane = await planeTo(upstream.port);
  const client = rawClient(
    plane.port,
    "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-In: 7\r\n\r\n",
  );
  try {
    await client.until(/0\r\nx-sum: 7\r\n\r\n$/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});
