import { listener, route, startDataPlane, staticBackend, to } from "./support/data-plane.ts";
import { createMetrics } from "../src/telemetry/metrics.ts";
import { createAccessLog } from "../src/telemetry/access-log.ts";
const telemetry = process.env.TEL ? { metrics: createMetrics("x"), accessLog: createAccessLog({ write: () => true }) } : undefined;
const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", Number(process.env.UP))], telemetry ? {telemetry} : {});
console.log(plane.port);
process.on("message", () => { process.send!(process.cpuUsage()); });
process.on("SIGINT", () => process.exit());
