/** The settings file of a data plane: what it may set, and what is refused by path. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readSettings } from "../../../src/api/data-plane-settings.ts";

test("every setting is read under the name of its option", () => {
  const { settings, errors } = readSettings({
    config: {
      logging: { format: "json" },
      spiffe: { endpoint: "unix:///spiffe/agent.sock" },
      trustedProxies: ["10.0.0.0/8", "2001:db8::1"],
      workers: 2,
      threadTimeout: 0,
      adminAddress: "127.0.0.1:15001",
      metricsAddress: "[::]:15002",
      readinessAddress: ":15003",
      drain: { min: 1, max: 2 },
    },
  });
  assert.deepEqual(errors, []);
  assert.deepEqual(settings, {
    logFormat: "json",
    spiffeEndpointSocket: "unix:///spiffe/agent.sock",
    trustedProxies: ["10.0.0.0/8", "2001:db8::1"],
    workers: 2,
    threadTimeout: 0,
    adminAddress: { host: "127.0.0.1", port: 15_001 },
    metricsAddress: { host: "::", port: 15_002 },
    readinessAddress: { host: "", port: 15_003 },
    drainMin: 1,
    gracePeriod: 2,
  });
});

test("an empty file and members without a value set nothing", () => {
  for (const document of [{}, { config: null }, { config: { logging: null, drain: { min: null } } }])
    assert.deepEqual(readSettings(document), { settings: {}, errors: [] });
});

const REFUSED: readonly (readonly [document: unknown, path: string, message: RegExp])[] = [
  [{ confg: {} }, "confg", /is not a setting of data planes; known below the top: "config"/],
  [{ config: [] }, "config", /must be a mapping/],
  [{ config: { loging: {} } }, "config.loging", /is not a setting .* logging\.format, spiffe\.endpoint/],
  [{ config: { logging: { level: "info" } } }, "config.logging.level", /is not a setting/],
  [{ config: { logging: "json" } }, "config.logging", /must be a mapping/],
  [{ config: { logging: { format: "xml" } } }, "config.logging.format", /must be "text" or "json"/],
  [{ config: { spiffe: { endpoint: "http://a" } } }, "config.spiffe.endpoint", /must be an address such as "unix:/],
  [{ config: { trustedProxies: ["10.0.0.0/64"] } }, "config.trustedProxies", /a list of at most 1,000 addresses/],
  [
    { config: { trustedProxies: Array.from({ length: 1_001 }, () => "::1") } },
    "config.trustedProxies",
    /at most 1,000/,
  ],
  [{ config: { workers: 0.5 } }, "config.workers", /a whole number from 1 to/],
  [{ config: { threadTimeout: -1 } }, "config.threadTimeout", /a number of seconds/],
  [{ config: { adminAddress: "nowhere" } }, "config.adminAddress", /an address such as/],
  [{ config: { drain: { min: 9, max: 3 } } }, "config.drain.min", /must not be greater than drain\.max/],
];

for (const [document, path, message] of REFUSED) {
  test(`${path} of ${JSON.stringify(document).slice(0, 60)} is refused`, () => {
    const [error, ...more] = readSettings(document).errors;
    assert.equal(error?.path, path);
    assert.match(error?.message ?? "", message);
    assert.deepEqual(more, []);
  });
}

test("a file that is wrong everywhere gives a bounded answer", () => {
  const config = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`m${at}`, 1]));
  assert.equal(readSettings({ config }).errors.length, 20);
});
