import { go, serviceAddress } from "../router.ts";
import { type namespacesOf, OWNERS, type ServiceFilter, SORTS, STATES } from "../service-filter.ts";

interface Props {
  readonly filter: ServiceFilter;
  readonly namespaces: ReturnType<typeof namespacesOf>;
  /** Whether anything is known to differ. */
  readonly kernels: boolean;
  /** The first service that is shown. */
  readonly first: string | undefined;
  readonly onFilter: (changed: Partial<ServiceFilter>) => void;
}

/** What chooses the services that are shown, and their order. */
export function ServiceTools({ filter, namespaces, kernels, first, onFilter }: Props) {
  const { q, namespace, owner, state, sort, descending } = filter;
  const { differs, ...others } = STATES;
  const known = namespaces.some(([name]) => name === namespace) || namespace === "";
  const all = namespaces.map(([name, count]) => [name, `${name} (${count})`] as const);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && first !== undefined) go(serviceAddress(first));
    if (event.key === "ArrowDown") document.querySelector<HTMLElement>(".list tbody a")?.focus();
  };
  return (
    <search class="tools">
      <label class="long">
        Name, address, node port or pod address (press / to get here)
        <input
          type="search"
          value={q}
          onInput={(event) => onFilter({ q: event.currentTarget.value })}
          onKeyDown={onKeyDown}
          autoComplete="off"
          spellcheck={false}
        />
      </label>
      <Choice
        label="Namespace"
        value={namespace}
        any="all"
        options={known ? all : [[namespace, `${namespace} (0)`], ...all]}
        onValue={(value) => onFilter({ namespace: value })}
      />
      <Choice
        label="Owner"
        value={owner}
        any="all"
        options={Object.entries(OWNERS)}
        onValue={(value) => onFilter({ owner: value as ServiceFilter["owner"] })}
      />
      <Choice
        label="State"
        value={state}
        any="any"
        options={Object.entries(kernels || state === "differs" ? { differs, ...others } : others)}
        onValue={(value) => onFilter({ state: value as ServiceFilter["state"] })}
      />
      <Choice
        label="Sorted by"
        value={sort}
        options={Object.entries(SORTS)}
        onValue={(value) => onFilter({ sort: value as ServiceFilter["sort"] })}
      />
      <button type="button" aria-pressed={descending} onClick={() => onFilter({ descending: !descending })}>
        {descending ? "↓" : "↑"} <span class="hidden">descending</span>
      </button>
    </search>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  /** What none of them is called; absent: one is always chosen. */
  readonly any?: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onValue: (value: string) => void;
}

function Choice({ label, value, any, options, onValue }: ChoiceProps) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onValue(event.currentTarget.value)}>
        {any !== undefined && <option value="">{any}</option>}
        {options.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
