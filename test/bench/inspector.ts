/** What a process of Node keeps on its heap, asked over its inspector after a full collection. */

/** Command line of a process that can be asked. */
export function inspected(port: number): string {
  return `--inspect=127.0.0.1:${port}`;
}

/** MiB of objects that are still reachable, of the main thread. */
export async function heapMiB(port: number): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/json/list`);
  const [target] = (await answer.json()) as { readonly webSocketDebuggerUrl: string }[]; // as Node's inspector writes it
  if (target === undefined) throw new Error(`nothing can be inspected at port ${port}`);
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  try {
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve);
      socket.addEventListener("error", () => reject(new Error(`the inspector at port ${port} does not answer`)));
    });
    const ask = asker(socket);
    await ask("HeapProfiler.enable");
    // Finalizers of the first collection free what the second one finds.
    await ask("HeapProfiler.collectGarbage");
    await ask("HeapProfiler.collectGarbage");
    const { usedSize } = await ask("Runtime.getHeapUsage");
    if (usedSize === undefined) throw new TypeError("the inspector does not say how much is used");
    return usedSize / 1024 / 1024;
  } finally {
    socket.close();
  }
}

interface Reply {
  readonly id?: number;
  readonly result?: { readonly usedSize?: number };
}

type Ask = (method: string) => Promise<NonNullable<Reply["result"]>>;

function asker(socket: WebSocket): Ask {
  let last = 0;
  return (method) =>
    new Promise((resolve) => {
      const id = ++last;
      const hear = ({ data }: MessageEvent): void => {
        const reply = JSON.parse(String(data)) as Reply; // the protocol of the inspector
        if (reply.id !== id) return;
        socket.removeEventListener("message", hear);
        resolve(reply.result ?? {});
      };
      socket.addEventListener("message", hear);
      socket.send(JSON.stringify({ id, method }));
    });
}
