import type { Store } from "../store.ts";

interface Props {
  readonly label: string;
  readonly store: Store;
  readonly node: string;
  readonly onNode: (node: string) => void;
}

/** One of the nodes that there are. */
export function NodeChoice({ label, store, node, onNode }: Props) {
  const names = [...new Set([node, ...store.nodes.keys()])].sort();
  return (
    <label>
      {label}
      <select value={node} onChange={(event) => onNode(event.currentTarget.value)}>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
