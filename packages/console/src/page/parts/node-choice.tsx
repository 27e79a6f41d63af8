import type { Store } from "../store.ts";

interface Props {
  readonly label: string;
  readonly store: Store;
  /** "": all of them, where that can be chosen. */
  readonly node: string;
  /** What all of them are called; absent: one is always chosen. */
  readonly all?: string;
  readonly onNode: (node: string) => void;
}

/** One of the nodes that there are. */
export function NodeChoice({ label, store, node, all, onNode }: Props) {
  const names = [...new Set([...(node === "" ? [] : [node]), ...store.nodes.keys()])].sort();
  return (
    <label>
      {label}
      <select value={node} onChange={(event) => onNode(event.currentTarget.value)}>
        {all !== undefined && <option value="">{all}</option>}
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
