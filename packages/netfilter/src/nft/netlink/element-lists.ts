import type { AttributeWriter } from "../../netlink/writer.ts";
import type { Hex } from "../hex.ts";
import type { SetElement } from "../model.ts";
import { writeElement } from "./contents.ts";
import { DATA_VALUE, ELEMENT, LIST_ITEM } from "./numbers.ts";
import { plainElement } from "./plain-element.ts";

/** The list of a message, while it is written. */
export interface ItemList<T> {
  /** Bytes that it will have. */
  readonly length: number;
  add(item: T): void;
  /** Writes what waits. */
  end(): void;
}

/** Elements that come. Plain ones wait for each other, so that many are written as one text. */
export class ElementList implements ItemList<SetElement> {
  readonly #list: AttributeWriter;
  readonly #start: number;
  #waiting: Hex = "";

  constructor(list: AttributeWriter) {
    this.#list = list;
    this.#start = list.length;
  }

  get length(): number {
    return this.#list.length - this.#start + this.#waiting.length / 2;
  }

  add(element: SetElement): void {
    const plain = plainElement(element);
    if (plain !== undefined) {
      this.#waiting += plain;
      return;
    }
    this.end();
    this.#list.nest(LIST_ITEM, (item) => writeElement(element, item));
  }

  end(): void {
    this.#list.digits(this.#waiting);
    this.#waiting = "";
  }
}

/** Keys of elements that go. */
export class KeyList implements ItemList<Hex> {
  readonly #list: AttributeWriter;
  readonly #start: number;

  constructor(list: AttributeWriter) {
    this.#list = list;
    this.#start = list.length;
  }

  get length(): number {
    return this.#list.length - this.#start;
  }

  add(key: Hex): void {
    this.#list.nest(LIST_ITEM, (item) => item.nest(ELEMENT.key, (value) => value.hex(DATA_VALUE, key)));
  }

  end(): void {}
}
