import { Wake } from "../../addresses/wake.ts";
import { concerns, type NftablesNews, type NftablesWatchOptions } from "../../nftables/watch.ts";

/** Those who watch, and what each has not read yet. */
export class Watchers {
  readonly #watching = new Set<{ readonly wake: Wake; readonly news: NftablesNews[] }>();

  notify(news: NftablesNews): void {
    for (const one of this.#watching) {
      one.news.push(news);
      one.wake.up();
    }
  }

  async *watch({
    signal,
    tables,
    onListening = () => {},
  }: NftablesWatchOptions): AsyncGenerator<NftablesNews, void, void> {
    const one = { wake: new Wake(signal), news: [] as NftablesNews[] };
    this.#watching.add(one);
    onListening();
    try {
      while (!signal.aborted) {
        one.wake.forget();
        for (const news of one.news.splice(0)) if (concerns(news, tables)) yield news;
        await one.wake.wait();
      }
    } finally {
      this.#watching.delete(one);
    }
  }
}
