/** Lines that `gwproxy up` prints. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { consoleUrl } from "../../../src/runtime/report.ts";

test("the console is named by an address that a browser on this machine can open", () => {
  assert.deepEqual(
    ["127.0.0.1:15000", "0.0.0.0:15000", "[::]:15000", ":15000", "[::1]:1", "10.0.0.1:15000", "localhost:1"].map(
      consoleUrl,
    ),
    [
      "http://127.0.0.1:15000/",
      "http://127.0.0.1:15000/",
      "http://127.0.0.1:15000/",
      "http://127.0.0.1:15000/",
      "http://[::1]:1/",
      "http://10.0.0.1:15000/",
      "http://localhost:1/",
    ],
  );
});
