/** Reads the heap size of a Node process over its inspector, after a full garbage collection of each thread. */

/** Returns the flag that opens the inspector of a process. */
export function inspected(port: number): string {
  return `--inspect=127.0.0.1:${port}`;
}

/** Returns the MiB of reachable objects in all threads together. */
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
    const inspector = new Inspector(socket);
    let bytes = await usedAfterCollection((method) => inspector.ask(method));
    for (const worker of await inspector.workers())
      bytes += await usedAfterCollection((method) => inspector.askWorker(worker, method));
    return bytes / 1024 / 1024;
  } finally {
    socket.close();
  }
}

type Ask = (method: string) => Promise<Result>;

async function usedAfterCollection(ask: Ask): Promise<number> {
  await ask("HeapProfiler.enable");
  // Finalizers that run after the first collection release objects that only the second one frees.
  await ask("HeapProfiler.collectGarbage");
  await ask("HeapProfiler.collectGarbage");
  const { usedSize } = await ask("Runtime.getHeapUsage");
  if (usedSize === undefined) throw new TypeError("the inspector does not say how much is used");
  return usedSize;
}

interface Result {
  readonly usedSize?: number;
}

/** The members of a protocol message that are read here. */
interface Message {
  readonly id?: number;
  readonly result?: Result;
  readonly method?: string;
  readonly params?: { readonly sessionId?: string; readonly message?: string };
}

/** A connection to the inspector. Responses of workers arrive wrapped in events of the main thread. */
class Inspector {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<string, (result: Result) => void>();
  readonly #workers: string[] = [];
  #last = 0;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#hear("", String(data)));
  }

  ask(method: string, params: object = {}): Promise<Result> {
    const id = ++this.#last;
    this.#socket.send(JSON.stringify({ id, method, params }));
    return this.#answered("", id);
  }

  async workers(): Promise<readonly string[]> {
    // The inspector reports the existing workers before it responds.
    await this.ask("NodeWorker.enable", { waitForDebuggerOnStart: false });
    return this.#workers;
  }

  askWorker(worker: string, method: string): Promise<Result> {
    const id = ++this.#last;
    const message = JSON.stringify({ id, method, params: {} });
    void this.ask("NodeWorker.sendMessageToWorker", { sessionId: worker, message });
    return this.#answered(worker, id);
  }

  #answered(session: string, id: number): Promise<Result> {
    return new Promise((resolve) => this.#waiting.set(`${session} ${id}`, resolve));
  }

  #hear(session: string, text: string): void {
    const { id, result, method, params } = JSON.parse(text) as Message; // the protocol of the inspector
    if (method === "NodeWorker.attachedToWorker") this.#workers.push(params?.sessionId ?? "");
    if (method === "NodeWorker.receivedMessageFromWorker") this.#hear(params?.sessionId ?? "", params?.message ?? "{}");
    this.#waiting.get(`${session} ${id}`)?.(result ?? {});
    this.#waiting.delete(`${session} ${id}`);
  }
}
