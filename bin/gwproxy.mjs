#!/usr/bin/env node
// The command line. In a checkout the sources run as they are; in the published package the compiled files do.
import { existsSync } from "node:fs";

const REQUIRED_MAJOR = 24;
if (Number(process.versions.node.split(".")[0]) < REQUIRED_MAJOR) {
  process.stderr.write(
    `gwproxy needs Node.js ${REQUIRED_MAJOR} or later; this is ${process.versions.node}.\n` +
      "In a checkout, `make up` brings the right one; otherwise install Node.js 24 LTS.\n",
  );
  process.exit(1);
}
const source = new URL("../src/cli/main.ts", import.meta.url);
const built = new URL("../dist/src/cli/main.js", import.meta.url);
if (!existsSync(source) && !existsSync(built)) {
  // npm packs what is there when it is told to run no scripts, and cannot be told to refuse.
  process.stderr.write(
    "gwproxy: this package was packed before it was built, so there is no program in it.\n" +
      "Build it first: `make package` in a checkout, or `npm pack` without --ignore-scripts.\n",
  );
  process.exit(2);
}
const { main } = await import((existsSync(source) ? source : built).href);
const code = await main(process.argv);
// A command that failed may leave threads, timers and sockets behind, which must not keep the process alive.
if (code !== 0) await new Promise((resolve) => process.stdout.write("", () => process.stderr.write("", resolve)));
if (code === 0) process.exitCode = 0;
else process.exit(code);
