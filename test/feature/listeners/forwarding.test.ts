import assert from "node:assert/strict";
import { test } from "node:test";
import {
  prefix,
  rawClient,
  route,
  staticBackend,
  startDataPlane,
  to,
  listener,
} from "../../support/gateway/data-plane.ts";
import { startHttp2Upstream } from "../../support/servers/http2-upstream.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

test("a GET is forwarded and its answer comes back whole", async () => {
  const upstream = await startUpstream((request, response) => {
    response.setHeader("x-up", "1");
    response.end(`hello ${request.url}`);
  });
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  try {
    const response = await fetch(`${plane.url}/a?b=c`);
    assert.equal(response.status, 200);
    assert.equal(await response.text(), "hello /a?b=c");
    assert.equal(response.headers.get("x-up"), "1");
    assert.match(response.headers.get("x-request-id") ?? "", /^[0-9a-f-]{36}$/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("requests one after another share one connection to the upstream", async () => {
  const upstream = await startUpstream((_request, response) => response.end("ok"));
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  try {
    for (let at = 0; at < 5; at++) assert.equal(await (await fetch(plane.url)).text(), "ok");
    assert.equal(upstream.connections(), 1);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("hop-by-hop fields are dropped both ways and forwarding fields are written anew", async () => {
  const upstream = await startUpstream((_request, response) => {
    response.writeHead(200, {
      connection: "keep-alive, x-gone",
      "x-gone": "1",
      "proxy-authenticate": "Basic",
      "x-kept": "1",
    });
    response.end("ok");
  });
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  const client = rawClient(
    plane.port,
    "GET / HTTP/1.1\r\nHost: one.example:81\r\nConnection: close, x-secret, authorization\r\nX-Secret: 1\r\n" +
      "Authorization: Bearer k\r\nTE: trailers, deflate\r\nKeep-Alive: timeout=3\r\nProxy-Authorization: Basic x\r\n" +
      "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nForwarded: for=1\r\nX-Mixed-Case: V\r\n\r\n",
  );
  try {
    const text = await client.closed();
    assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(text, /x-kept: 1/);
    assert.doesNotMatch(text, /x-gone|proxy-authenticate/i);
    const [request] = upstream.requests;
    assert.ok(request);
    const { headers, rawHeaders } = request;
    assert.equal(headers.host, "one.example:81");
    assert.equal(headers["x-secret"], undefined);
    assert.equal(headers.authorization, "Bearer k");
    assert.equal(headers["te"], "trailers");
    assert.equal(headers["keep-alive"], undefined);
    assert.equal(headers["proxy-authorization"], undefined);
    assert.equal(headers["x-forwarded-for"], "9.9.9.9, 127.0.0.1");
    assert.equal(headers["x-forwarded-proto"], "http");
    assert.equal(headers["x-forwarded-host"], "one.example:81");
    assert.equal(headers.forwarded, undefined);
    assert.ok(rawHeaders.includes("x-mixed-case"));
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("what a 407 asks for reaches a client that takes us for its proxy, and no other", async (t) => {
  const ask = { "proxy-authenticate": "Basic realm=x", "x-kept": "1" };
  const upstream = await startUpstream((_request, response) => response.writeHead(407, ask).end());
  t.after(() => upstream.close());
  const second = await startHttp2Upstream(t, (stream) =>
    stream.respond({ ":status": 407, ...ask }, { endStream: true }),
  );
  const plane = await startDataPlane([
    listener(),
    route("r", [to("b")]),
    staticBackend("b", upstream.port),
    route("g", [to("g", { matches: prefix("/http2") })]),
    staticBackend("g", second.port),
  ]);
  t.after(() => plane.proxy.close());
  const answerTo = (target: string): Promise<string> =>
    rawClient(
      plane.port,
      `GET ${target} HTTP/1.1\r\nhost: a.test\r\ncontent-type: ${target.endsWith("/http2") ? "application/grpc" : "x/y"}\r\nconnection: close\r\n\r\n`,
    ).closed();
  for (const path of ["/", "/http2"]) {
    const direct = await answerTo(path);
    assert.match(direct, /^HTTP\/1\.1 407 [^]*x-kept: 1/);
    assert.doesNotMatch(direct, /proxy-authenticate/);
    assert.match(await answerTo(`http://a.test${path}`), /^HTTP\/1\.1 407 [^]*proxy-authenticate: Basic realm=x/);
  }
});

test("HEAD keeps the length of what GET would give and has no body", async () => {
  const upstream = await startUpstream((request, response) => {
    response.setHeader("content-length", "5");
    response.end(request.method === "HEAD" ? undefined : "hello");
  });
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  const client = rawClient(
    plane.port,
    "HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
  );
  try {
    const text = await client.closed();
    assert.equal(text.match(/content-length: 5/g)?.length, 2);
    assert.equal(text.match(/hello/g)?.length, 1);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});
