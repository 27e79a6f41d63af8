import type { AttributeWriter } from "../../netlink/writer.ts";
import type { Hex } from "../hex.ts";
import { LIST_ITEM } from "./numbers.ts";

/** The list of a message, while it is written. Plain items wait, so that many are written as one text. */
export class ItemList<T> {
  readonly #list: AttributeWriter;
  readonly #start: number;
  readonly #plain: (item: T) => Hex | undefined;
  readonly #write: (item: T, to: AttributeWriter) => void;
  #waiting: Hex = "";

  /**
   * @param plain the whole item as hex digits; undefined: it is not plain
   * @param write the content of any other
   */
  constructor(
    list: AttributeWriter,
    plain: (item: T) => Hex | undefined,
    write: (item: T, to: AttributeWriter) => void,
  ) {
    this.#list = list;
    this.#start = list.length;
    this.#plain = plain;
    this.#write = write;
  }

  /** Bytes that it will have. */
  get length(): number {
    return this.#list.length - this.#start + this.#waiting.length / 2;
  }

  add(item: T): void {
    const digits = this.#plain(item);
    if (digits !== undefined) {
      this.#waiting += digits;
      return;
    }
    this.end();
    this.#list.nest(LIST_ITEM, (to) => this.#write(item, to));
  }

  /** Writes what waits. */
  end(): void {
    this.#list.digits(this.#waiting);
    this.#waiting = "";
  }
}
