/**
 * A crowd of idle clients as a process of its own, so that neither their memory nor their file descriptors are the gateway's:
 * each has got one answer and says nothing more. Arguments: port, how many, kind. Prints "ready" and stays until its input ends.
 */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

const [port = 0, count = 0] = process.argv.slice(2, 4).map(Number);
const kind = process.argv[4];
const AT_ONCE = 100;
const REQUEST = "GET /honest HTTP/1.1\r\nHost: a.test\r\n\r\n";

async function arrive(): Promise<void> {
  if (kind === "http2") {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    const stream = session.request({ ":path": "/honest", ":authority": "a.test" });
    stream.resume();
    await once(stream, "end");
    return;
  }
  const options = { port, host: "127.0.0.1" };
  const socket: Socket = kind === "tls" ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options);
  socket.write(REQUEST);
  let text = "";
  while (!text.endsWith("served")) text += String((await once(socket, "data"))[0]);
}

for (let at = 0; at < count; at += AT_ONCE)
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - at) }, arrive));
process.stdout.write("ready\n");
process.stdin.resume();
await once(process.stdin, "end");
process.exit(0);
