/**
 * Reads the body of a response into one Buffer, up to a limit. Used for HTTP callouts and for responses of LLM
 * providers.
 */
import type { BodySink, BodyStream } from "./body.ts";

/**
 * Resolves to undefined when the body is longer than the limit; the source is then destroyed.
 * @throws the error that the body broke off with
 */
export async function collect(source: BodyStream, limitBytes: number): Promise<Buffer | undefined> {
  const whole = source.whole?.();
  if (whole !== undefined) return whole.length > limitBytes ? undefined : whole;
  const collector = new Collector(source, limitBytes);
  source.read(collector);
  return collector.done;
}

/** A class instead of an object of arrow functions: those would outlive their request (docs/performance.md). */
class Collector implements BodySink {
  readonly #source: BodyStream;
  readonly #limitBytes: number;
  readonly #result: PromiseWithResolvers<Buffer | undefined> = Promise.withResolvers();
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(source: BodyStream, limitBytes: number) {
    this.#source = source;
    this.#limitBytes = limitBytes;
  }

  get done(): Promise<Buffer | undefined> {
    return this.#result.promise;
  }

  data(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#limitBytes) {
      this.#source.destroy();
      this.#result.resolve(undefined);
      return false;
    }
    this.#chunks.push(chunk);
    return true;
  }

  end(): void {
    const [first] = this.#chunks;
    this.#result.resolve(this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks));
  }

  error(error: Error): void {
    this.#result.reject(error);
  }
}
