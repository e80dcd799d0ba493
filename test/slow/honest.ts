/**
 * An honest client as a process of its own, so that an attacker's work is not in its way: asks over and over, each time on a
 * connection of its own, until its input ends. Argument: port. Prints "ready" at its first answer, and how many there were
 * and how long the longest took at the end; ends with 1 at the first answer that is none.
 */
import { request } from "node:http";

const port = Number(process.argv[2]);
let stopped = false;
process.stdin.resume().on("end", () => (stopped = true));

function ask(): Promise<string> {
  return new Promise((resolve) => {
    const asked = request({ host: "127.0.0.1", port, path: "/honest", agent: false }, (response) => {
      let text = "";
      response.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
      response.on("close", () => resolve(`${response.statusCode} ${text}`));
    });
    asked.on("error", (error) => resolve(error.message));
    asked.end();
  });
}

let answers = 0;
let longestMs = 0;
do {
  const began = performance.now();
  const answer = await ask();
  if (answer !== "200 served") {
    process.stdout.write(`after ${answers} answers: ${answer}\n`);
    process.exit(1);
  }
  longestMs = Math.max(longestMs, performance.now() - began);
  if (++answers === 1) process.stdout.write("ready\n");
} while (!stopped);
process.stdout.write(`${answers} honest answers, the slowest after ${longestMs.toFixed(0)} ms\n`);
