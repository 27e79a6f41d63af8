/** The list of Services, with its columns and tools. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { SearchAnswer, ServiceRow } from "../../protocol.ts";
import { type Difference, differingServices } from "../findings.ts";
import { Age, ageText, Badge, Owner } from "../parts/common.tsx";
import { type Column, RowList } from "../parts/row-list.tsx";
import { addressOf, go, replaceAddress, serviceAddress } from "../router.ts";
import {
  emptyText,
  filtered,
  filterOf,
  namespacesOf,
  OWNERS,
  queryOf,
  type ServiceFilter,
  SORTS,
  type Sort,
  STATES,
} from "../service-filter.ts";
import { ask, type Store } from "../store.ts";

/** Every service, as many as there are; what is shown of them stands in the page's address. */
export function ServicesView({ store, query }: { readonly store: Store; readonly query: URLSearchParams }) {
  const filter = filterOf(query);
  const { revision } = store;
  const found = useSearch(filter.q, store);
  const differing = useMemo(() => differingServices(store.nodes.values()), [revision]);
  const rows = useMemo(() => {
    const keys = found ?? store.keys;
    return filtered(
      keys.flatMap((key) => store.rows.get(key) ?? []),
      filter,
      differing,
    );
  }, [found, query.toString(), revision]);
  const namespaces = useMemo(() => namespacesOf(store.rows.values()), [revision]);
  const node = store.facts?.node ?? "";
  const kernels = store.facts?.kernels === true;
  useEffect(() => store.look(kernels ? [node] : []), [node, revision]);
  const change = (changed: Partial<ServiceFilter>) =>
    replaceAddress(addressOf("services", [], queryOf({ ...filter, ...changed })));
  return (
    <>
      <div class="head">
        <h1>Services</h1>
        <span class="quiet" role="status">
          {rows.length === store.rows.size ? `${rows.length}` : `${rows.length} of ${store.rows.size}`}
        </span>
        <Age source={`plan of ${node}`} at={store.objectsAt} />
      </div>
      <ServiceTools
        filter={filter}
        namespaces={namespaces}
        kernels={kernels}
        first={rows[0]?.service}
        onFilter={change}
      />
      {rows.length === 0 ? (
        <p class="empty">
          {emptyText(filter, store.rows.size)} {store.rows.size > 0 && <a href={addressOf("services")}>All services</a>}
        </p>
      ) : (
        <RowList
          label="Services"
          rows={rows}
          keyOf={({ service }) => service}
          isBad={({ service }) => differing.has(service)}
          columns={serviceColumns(differing)}
          order={filter}
          onOrder={change}
        />
      )}
    </>
  );
}

/** Undefined: nothing is searched for. */
function useSearch(text: string, store: Store): readonly ServiceRow["service"][] | undefined {
  const [found, setFound] = useState<SearchAnswer["services"] | undefined>();
  const { size } = store.rows;
  useEffect(() => {
    const stop = new AbortController();
    if (text.trim() === "") setFound(undefined);
    else {
      ask<SearchAnswer>(`api/search?q=${encodeURIComponent(text)}`, undefined, stop.signal).then((asked) => {
        if (asked.state === "answered") setFound(asked.answer.services);
      });
    }
    return () => stop.abort();
  }, [text, size, store.objectsAt]);
  return text.trim() === "" ? undefined : found;
}

/** What the list says of a service; a narrow page has the first and the last ones. */
function serviceColumns(differing: ReadonlyMap<string, readonly Difference[]>): readonly Column<ServiceRow, Sort>[] {
  return [
    {
      title: "Service",
      sort: "service",
      width: "26%",
      cell: (row) => (
        <a class="name" href={serviceAddress(row.service)}>
          {row.service}
        </a>
      ),
    },
    { title: "Owner", width: "14%", wide: true, cell: ({ owners }) => ownerCell(owners) },
    {
      title: "Frontends",
      wide: true,
      cell: ({ frontends }) => <span class="mono">{frontends.join("  ")}</span>,
      whole: ({ frontends }) => frontends.join("\n"),
    },
    {
      title: "Ready",
      sort: "ready",
      width: "80px",
      number: true,
      cell: ({ ready, endpoints }) => `${ready} / ${endpoints}`,
    },
    { title: "Local", sort: "local", width: "72px", number: true, wide: true, cell: ({ local }) => local },
    {
      title: "Draining",
      sort: "draining",
      width: "94px",
      number: true,
      wide: true,
      cell: ({ draining }) => (draining === 0 ? "–" : draining),
    },
    {
      title: "Age",
      sort: "age",
      width: "92px",
      number: true,
      wide: true,
      cell: ({ created }) => (created === undefined ? "–" : ageText(Math.max(0, Date.now() - created))),
    },
    { title: "State", width: "172px", cell: (row) => <State row={row} found={differing.get(row.service)} /> },
  ];
}

function State({ row, found }: { readonly row: ServiceRow; readonly found: readonly Difference[] | undefined }) {
  if (found !== undefined) return <Badge tone="bad" text={`differs on ${nodesText(found)}`} />;
  return row.ready === 0 ? <Badge tone="warn" text="no endpoint" /> : <>–</>;
}

function ownerCell(owners: ServiceRow["owners"]) {
  const different = [...new Set(Object.values(owners))];
  if (different.length === 0) return <Badge tone="plain" text="no ClusterIP" />;
  return different.map((ownership) => <Owner key={ownership} ownership={ownership} />);
}

function nodesText(found: readonly { readonly node: string }[]): string {
  const nodes = [...new Set(found.map(({ node }) => node))];
  return nodes.length === 1 ? (nodes[0] ?? "") : `${nodes.length} nodes`;
}

interface Props {
  readonly filter: ServiceFilter;
  readonly namespaces: ReturnType<typeof namespacesOf>;
  /** Whether anything is known to differ. */
  readonly kernels: boolean;
  readonly first: string | undefined;
  readonly onFilter: (changed: Partial<ServiceFilter>) => void;
}

/** What chooses the services that are shown, and their order. */
function ServiceTools({ filter, namespaces, kernels, first, onFilter }: Props) {
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
