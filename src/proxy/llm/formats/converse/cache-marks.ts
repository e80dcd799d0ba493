/**
 * Cache points of a Converse request: at most four, in the order system, messages, tools. A point ends a prefix, and it
 * is refused at the start of its list, after reasoning and after a document that is not PDF.
 */
import type { CacheMark } from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
import { objectOf, type JsonObject } from "../../shared/json.ts";

const MAX_POINTS = 4;

export class CacheMarks {
  readonly #losses: Losses;
  #left: number;

  /** @param isSupported false for a model that refuses cache points */
  constructor(isSupported: boolean, losses: Losses) {
    this.#left = isSupported ? MAX_POINTS : 0;
    this.#losses = losses;
  }

  /** @param blocks of one list; the point goes behind the last one that it may follow */
  addTo(blocks: JsonObject[], { ttl }: CacheMark, path = "cache_control"): void {
    let at = blocks.length;
    while (at > 0 && isTextDocument(blocks[at - 1])) at--;
    const before = blocks[at - 1];
    const isRefused = before === undefined || "reasoningContent" in before || "cachePoint" in before;
    if (isRefused || this.#left === 0) return this.#losses.add(path === "cache_control" ? path : `${path} cache mark`);
    this.#left--;
    // Models that know no other time refuse the member, and five minutes are meant without it.
    const lifetime = ttl === undefined || ttl === "5m" ? {} : { ttl };
    blocks.splice(at, 0, { cachePoint: { type: "default", ...lifetime } });
  }
}

function isTextDocument(block: JsonObject | undefined): boolean {
  const document = objectOf(block?.["document"]);
  return document !== undefined && document["format"] !== "pdf";
}
