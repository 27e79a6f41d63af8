import { bitAt, type Prefix, type PrefixNode, shortened } from "./prefix-node.ts";
import { wordsText } from "./words.ts";

/** Of the addresses of a prefix: all, or those of some CIDRs beneath it, sorted. */
type Region = "all" | readonly string[];

/**
 * The addresses whose longest prefix has a value that is wanted. What was found of a part that maps have in common is
 * kept, so that it costs little to ask again after a change.
 */
export class PrefixRegions<Value extends object> {
  readonly #wanted: (value: Value) => boolean;
  readonly #known = { true: new WeakMap<PrefixNode<Value>, Region>(), false: new WeakMap<PrefixNode<Value>, Region>() };

  /** @param wanted always says the same of a value */
  constructor(wanted: (value: Value) => boolean) {
    this.#wanted = wanted;
  }

  /** The fewest CIDRs, sorted. */
  under(root: PrefixNode<Value> | undefined): readonly string[] {
    return root === undefined ? [] : listOf(root, this.#of(root, false));
  }

  /** @param around whether addresses are wanted that lie in the node and in nothing beneath it */
  #of(node: PrefixNode<Value>, around: boolean): Region {
    const known = this.#known[`${around}`];
    const before = known.get(node);
    if (before !== undefined) return before;
    const inside = node.value === undefined ? around : this.#wanted(node.value);
    const isLeaf = node.zero === undefined && node.one === undefined;
    const found = isLeaf
      ? whole(inside)
      : together(node, this.#half(node, node.zero, inside), this.#half(node, node.one, inside));
    known.set(node, found);
    return found;
  }

  /** Between a node and the next one beneath it may be many bits. */
  #half(node: Prefix, below: PrefixNode<Value> | undefined, inside: boolean): Region {
    if (below === undefined) return whole(inside);
    let found = this.#of(below, inside);
    for (let length = below.length - 1; length > node.length; length--) {
      const up = shortened(below, length);
      const [zero, one] = bitAt(below.words, length) === 0 ? [found, whole(inside)] : [whole(inside), found];
      found = together(up, zero, one);
    }
    return found;
  }
}

const NONE: Region = [];

function whole(wanted: boolean): Region {
  return wanted ? "all" : NONE;
}

/** Of the two halves of a prefix. */
function together(prefix: Prefix, zero: Region, one: Region): Region {
  if (zero === "all" && one === "all") return "all";
  const found = [...listOf(half(prefix, 0), zero), ...listOf(half(prefix, 1), one)];
  return found.length === 0 ? NONE : found;
}

function listOf({ words, length }: Pick<Prefix, "words" | "length">, region: Region): readonly string[] {
  return region === "all" ? [`${wordsText(words)}/${length}`] : region;
}

function half({ words, length }: Prefix, bit: number): Pick<Prefix, "words" | "length"> {
  const set = (1 << (31 - (length & 31))) >>> 0;
  return {
    words: bit === 0 ? words : words.map((word, at) => (at === length >> 5 ? (word | set) >>> 0 : word)),
    length: length + 1,
  };
}
