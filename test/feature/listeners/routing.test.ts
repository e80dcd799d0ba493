import assert from "node:assert/strict";
import { test } from "node:test";
import {
  LISTENER,
  bind,
  endpoints,
  listener,
  prefix,
  rawClient,
  route,
  serviceBackend,
  startDataPlane,
  staticBackend,
  to,
} from "../../support/gateway/data-plane.ts";
import { startUpstream, type TestUpstream } from "../../support/servers/upstream.ts";

function named(name: string): Promise<TestUpstream> {
  return startUpstream((request, response) => {
    request.resume();
    response.end(`${name} ${request.headers.host} ${request.url}`);
  });
}

async function get(port: number, path: string, headers: Record<string, string> = {}): Promise<string> {
  const lines = Object.entries({ Host: "a.example", Connection: "close", ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return rawClient(port, `GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`).closed();
}

test("listener and route are found by host, or it is 404", async () => {
  const upstream = await named("b");
  const plane = await startDataPlane([
    listener("*.example"),
    route("r", [to("b")], ["a.example"]),
    staticBackend("b", upstream.port),
  ]);
  try {
    assert.match(await get(plane.port, "/x"), /^HTTP\/1\.1 200 [^]*b a\.example \/x$/);
    assert.match(await get(plane.port, "/x", { Host: "b.example" }), /^HTTP\/1\.1 404 [^]*route not found$/);
    assert.match(await get(plane.port, "/x", { Host: "other" }), /^HTTP\/1\.1 404 [^]*listener not found$/);
    assert.match(await get(plane.port, "http://a.example/y", { Host: "other" }), /b a\.example \/y$/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("a request that a more specific host does not take falls to a wildcard route", async () => {
  const upstream = await named("b");
  const plane = await startDataPlane([
    listener(),
    route("one", [to("b", { matches: prefix("/one") })], ["a.example"]),
    route(
      "any",
      [to("b", { filters: [{ filter: { case: "redirect", value: { hostname: "else", status: 301 } } }] })],
      ["*.example"],
    ),
    staticBackend("b", upstream.port),
  ]);
  try {
    assert.match(await get(plane.port, "/one"), /200 OK/);
    assert.match(await get(plane.port, "/two?q=1"), /301[^]*location: http:\/\/else\/two\?q=1\r\n/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("rewrites change path and host, and header filters act on both directions", async () => {
  const upstream = await startUpstream((request, response) => {
    response.setHeader("x-gone", "1");
    response.end(`${request.headers.host} ${request.url} ${request.headers["x-set"]} ${request.headers["x-drop"]}`);
  });
  const rule = to("b", {
    matches: prefix("/old"),
    filters: [
      {
        filter: {
          case: "urlRewrite",
          value: { hostname: "new.host", path: { change: { case: "prefix", value: "/new/" } } },
        },
      },
      { filter: { case: "requestHeaders", value: { set: [{ name: "X-Set", value: "1" }], remove: ["X-Drop"] } } },
      { filter: { case: "responseHeaders", value: { add: [{ name: "x-more", value: "2" }], remove: ["x-gone"] } } },
    ],
  });
  const plane = await startDataPlane([listener(), route("r", [rule]), staticBackend("b", upstream.port)]);
  try {
    const text = await get(plane.port, "/old/x?q=1", { "X-Drop": "1" });
    assert.match(text, /new\.host \/new\/x\?q=1 1 undefined$/);
    assert.match(text, /x-more: 2/);
    assert.doesNotMatch(text, /x-gone/);
    assert.match(await get(plane.port, "/old"), /new\.host \/new 1 undefined$/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("weights divide the traffic, and an invalid backend answers 500 for its share", async () => {
  const upstream = await named("b");
  const rule = to("b", {
    backends: [
      { weight: 1, backend: "backend/default/b" },
      { weight: 1, backend: "", invalidReason: "no grant" },
      { weight: 0, backend: "backend/default/missing" },
    ],
  });
  const plane = await startDataPlane([listener(), route("r", [rule]), staticBackend("b", upstream.port)]);
  try {
    const counts = { good: 0, bad: 0 };
    for (let at = 0; at < 200; at++) {
      const response = await fetch(plane.url);
      const body = await response.text();
      if (response.status === 200) counts.good++;
      else assert.equal(`${response.status} ${body}`, "500 no valid backends");
      if (response.status !== 200) counts.bad++;
    }
    assert.ok(counts.good > 50 && counts.bad > 50, JSON.stringify(counts));
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("a service is served by its ready endpoints, and new endpoints need nothing else", async () => {
  const [one, two] = [await named("one"), await named("two")];
  const key = "service/default/s:80";
  const rule = { matches: prefix("/"), backends: [{ weight: 1, backend: key }] };
  const plane = await startDataPlane([listener(), route("r", [rule]), serviceBackend(key, 80)]);
  try {
    assert.match(await get(plane.port, "/"), /^HTTP\/1\.1 503 [^]*no healthy backends$/);
    await plane.set(endpoints(key, [one.port]));
    assert.match(await get(plane.port, "/"), /one a\.example \/$/);
    await plane.set(endpoints(key, [one.port, two.port]));
    const seen = new Set<string>();
    for (let at = 0; at < 64; at++) seen.add((await (await fetch(plane.url)).text()).slice(0, 3));
    assert.deepEqual([...seen].sort(), ["one", "two"]);
    await plane.set(endpoints(key, [two.port]));
    assert.match(await get(plane.port, "/"), /two a\.example \/$/);
  } finally {
    plane.proxy.close();
    await one.close();
    await two.close();
  }
});

test("a static backend with a name is called by its own name, one with an address by the client's", async () => {
  const upstream = await named("b");
  const plane = await startDataPlane([
    listener(),
    route("r", [to("address", { matches: prefix("/address") }), to("name", { matches: prefix("/name") })]),
    staticBackend("address", upstream.port),
    staticBackend("name", upstream.port, undefined, "localhost"),
  ]);
  try {
    assert.match(await get(plane.port, "/address"), /b a\.example \/address$/);
    assert.match(await get(plane.port, "/name"), /b localhost \/name$/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("nobody there is 503, gRPC clients read it in their own form", async () => {
  const gone = await named("gone");
  await gone.close();
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", gone.port)]);
  try {
    assert.match(await get(plane.port, "/"), /^HTTP\/1\.1 503 [^]*upstream call failed$/);
    const grpc = await get(plane.port, "/", { "Content-Type": "application/grpc+proto" });
    assert.match(grpc, /^HTTP\/1\.1 200 [^]*grpc-status: 14\r\ngrpc-message: upstream call failed\r\n/);
  } finally {
    plane.proxy.close();
  }
});

test("a deadline answers 504 before the head and cuts after it", async () => {
  const upstream = await startUpstream((request, response) => {
    if (request.url === "/late") response.write("part");
  });
  const rules = [
    to("b", { matches: prefix("/route"), requestTimeoutMs: 40 }),
    // Long enough for a head to come through on a machine that is busy with other things.
    to("b", { matches: prefix("/late"), requestTimeoutMs: 2000 }),
    to("b", { matches: prefix("/backend"), backendRequestTimeoutMs: 40 }),
  ];
  const plane = await startDataPlane([listener(), route("r", rules), staticBackend("b", upstream.port)]);
  try {
    assert.match(await get(plane.port, "/route"), /^HTTP\/1\.1 504 [^]*request timeout$/);
    assert.match(await get(plane.port, "/backend"), /^HTTP\/1\.1 504 [^]*upstream call timeout$/);
    const late = await get(plane.port, "/late");
    assert.match(late, /200 OK[^]*part/);
    assert.doesNotMatch(late, /0\r\n\r\n$/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("a rule that cannot be served as written answers 500", async () => {
  const plane = await startDataPlane([listener(), route("r", [to("b", { invalidReason: "unknown filter" })])]);
  try {
    assert.match(await get(plane.port, "/"), /^HTTP\/1\.1 500 [^]*this route is not configured correctly$/);
  } finally {
    plane.proxy.close();
  }
});

test("configuration changes under load lose no request", async () => {
  const [one, two] = [await named("one"), await named("two")];
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", one.port)]);
  let stop = false;
  let served = 0;
  const client = async (): Promise<void> => {
    while (!stop) {
      const response = await fetch(plane.url);
      assert.match(await response.text(), /^(?:one|two) /);
      served++;
    }
  };
  try {
    const clients = [client(), client(), client(), client()];
    for (let at = 0; at < 200; at++) {
      await plane.set(route(`other-${at % 7}`, [to("b", { matches: prefix(`/p${at}`) })]), route("r", [to("b")]));
      await plane.set(staticBackend("b", at % 2 === 0 ? two.port : one.port), listener());
      if (at % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    const seen = served;
    while (served < seen + 20) await new Promise((resolve) => setImmediate(resolve));
    stop = true;
    await Promise.all(clients);
  } finally {
    stop = true;
    plane.proxy.close();
    await one.close();
    await two.close();
  }
});

test("a removed bind stops accepting and lets what is in flight end", async () => {
  let finish: () => void = () => undefined;
  const upstream = await startUpstream((_request, response) => {
    response.write("part");
    finish = () => response.end("end");
  });
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  const client = rawClient(plane.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  try {
    await client.until(/part/);
    await plane.proxy.apply({ set: [], removed: [{ type: "Bind", key: bind().key }] });
    assert.deepEqual(plane.proxy.listeners(), []);
    await assert.rejects(fetch(plane.url));
    finish();
    await client.until(/end\r\n0\r\n\r\n$/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("a port that somebody holds is refused by name and everything else serves", async () => {
  const upstream = await named("b");
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)], {
    ports: (port) => (port === 80 ? 0 : upstream.port),
  });
  try {
    const { refused } = await plane.proxy.apply({ set: [bind("81/default/gw", 81)], removed: [] });
    assert.equal(refused.length, 1);
    assert.equal(refused[0]?.key, "81/default/gw");
    assert.match(refused[0]?.reason ?? "", /EADDRINUSE/);
    assert.match(await get(plane.port, "/"), /200 OK/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("a route that cannot be compiled is refused by name and its last version serves", async () => {
  const upstream = await named("b");
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  try {
    const broken = route("r", [to("b", { matches: [{ path: { case: "regex", value: "(" } }] })], [], LISTENER);
    const { refused } = await plane.proxy.apply({ set: [broken], removed: [] });
    assert.deepEqual(
      refused.map(({ type, key }) => `${type} ${key}`),
      ["HttpRoute httproute/default/r"],
    );
    assert.match(await get(plane.port, "/"), /200 OK/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("a new route that cannot be compiled answers 500 where it was to serve, and leaves the rest alone", async () => {
  const upstream = await named("b");
  const plane = await startDataPlane([listener(), route("wide", [to("b")]), staticBackend("b", upstream.port)]);
  try {
    const value = { case: "regex", value: "(" } as const;
    const headers = [{ name: "x", value }];
    const broken = route("narrow", [to("b", { matches: [{ path: { case: "prefix", value: "/private" }, headers }] })]);
    const { refused } = await plane.proxy.apply({ set: [broken], removed: [] });
    assert.deepEqual(
      refused.map(({ type, key }) => `${type} ${key}`),
      ["HttpRoute httproute/default/narrow"],
    );
    assert.match(await get(plane.port, "/private/file"), /^HTTP\/1.1 500 /);
    assert.match(await get(plane.port, "/public"), /200 OK/);
    await plane.proxy.apply({ set: [], removed: [{ type: "HttpRoute", key: "httproute/default/narrow" }] });
    assert.match(await get(plane.port, "/private/file"), /200 OK/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});
