import assert from "node:assert/strict";
import { test } from "node:test";
import { formatOf } from "../../../src/admin/metric-format.ts";

const CASES: readonly (readonly [accept: string, format: string])[] = [
  ["", "prometheus"],
  ["*/*", "prometheus"],
  ["text/html", "prometheus"],
  ["text/plain;version=0.0.4", "prometheus"],
  ["application/openmetrics-text", "openmetrics"],
  ["application/openmetrics-text; version=1.0.0; charset=utf-8", "openmetrics"],
  ['application/openmetrics-text; version="0.0.1"', "openmetrics"],
  ["application/openmetrics-text;version=2.0.0", "prometheus"],
  ["application/openmetrics-text;version=1.0.0;q=0", "prometheus"],
  ["application/openmetrics-text;q=0.5, text/plain;q=0.8", "prometheus"],
  ["Application/OpenMetrics-Text;Q=0.8, text/plain;q=0.8", "openmetrics"],
  ["application/openmetrics-text;q=high", "prometheus"],
  // What a scraper sends in its default configuration.
  [
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
    "openmetrics",
  ],
];

for (const [accept, format] of CASES)
  test(`a scraper that accepts "${accept}" gets ${format}`, () => assert.equal(formatOf(accept), format));
