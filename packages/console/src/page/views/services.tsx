import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SearchAnswer, ServiceRow } from "../../protocol.ts";
import { ask } from "../ask.ts";
import { differingServices } from "../findings.ts";
import { Age } from "../parts/age.tsx";
import { Badge, Owner } from "../parts/badge.tsx";
import { type Column, RowList } from "../parts/row-list.tsx";
import { addressOf, go, serviceAddress } from "../router.ts";
import type { Store } from "../store.ts";

const OWNERS = ["all", "ours", "mixed", "foreign"] as const;

/** Every service, as many as there are. */
export function ServicesView({ store, query }: { readonly store: Store; readonly query: URLSearchParams }) {
  const text = query.get("q") ?? "";
  const owner = query.get("owner") ?? "all";
  const found = useSearch(text, store);
  const differing = useMemo(() => differingServices(store.nodes.values()), [store.revision]);
  const rows = useMemo(() => {
    const keys = found ?? store.keys;
    const all = keys.flatMap((key) => store.rows.get(key) ?? []);
    return owner === "all" ? all : all.filter(({ owners }) => Object.values(owners).some((one) => one === owner));
  }, [found, owner, store.revision]);
  const node = store.facts?.node ?? "";
  useEffect(() => store.look(store.facts?.kernels === true ? [node] : []), [node, store.revision]);
  const set = (changed: Readonly<Record<string, string>>) =>
    history.replaceState(undefined, "", addressOf("services", [], { q: text, owner, ...changed }));
  const change = (changed: Readonly<Record<string, string>>) => {
    set(changed);
    dispatchEvent(new HashChangeEvent("hashchange"));
  };
  return (
    <>
      <div class="head">
        <h1>Services</h1>
        <span class="quiet" role="status">
          {rows.length === store.rows.size ? `${rows.length}` : `${rows.length} of ${store.rows.size}`}
        </span>
        <Age source={`plan of ${node}`} at={store.objectsAt} />
      </div>
      <search class="tools">
        <Search text={text} onText={(q) => change({ q })} first={rows[0]?.service} />
        <label>
          Owner
          <select value={owner} onChange={(event) => change({ owner: event.currentTarget.value })}>
            {OWNERS.map((one) => (
              <option key={one} value={one}>
                {one === "foreign" ? "another network" : one}
              </option>
            ))}
          </select>
        </label>
      </search>
      <RowList
        label="Services"
        rows={rows}
        keyOf={({ service }) => service}
        isBad={({ service }) => differing.has(service)}
        columns={columnsFor(differing)}
      />
    </>
  );
}

function Search(props: {
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly first: string | undefined;
}) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && props.first !== undefined) go(serviceAddress(props.first));
    if (event.key === "ArrowDown") document.querySelector<HTMLElement>(".list tbody a")?.focus();
  };
  return (
    <label>
      Name, address, node port or pod address (press / to get here)
      <input
        ref={input}
        type="search"
        value={props.text}
        onInput={(event) => props.onText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        autoComplete="off"
        spellcheck={false}
      />
    </label>
  );
}

/** Undefined: nothing is searched for. */
function useSearch(text: string, store: Store): readonly string[] | undefined {
  const [found, setFound] = useState<readonly string[] | undefined>();
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

function columnsFor(differing: ReturnType<typeof differingServices>): readonly Column<ServiceRow>[] {
  return [
    {
      title: "Service",
      width: "28%",
      cell: (row) => (
        <a class="name" href={serviceAddress(row.service)}>
          {row.service}
        </a>
      ),
    },
    { title: "Owner", width: "16%", cell: ({ owners }) => ownerCell(owners) },
    {
      title: "Frontends",
      cell: ({ frontends }) => <span class="mono">{frontends.join("  ")}</span>,
      whole: ({ frontends }) => frontends.join("\n"),
    },
    { title: "Ready", width: "80px", number: true, cell: ({ ready, endpoints }) => `${ready} / ${endpoints}` },
    { title: "Local", width: "64px", number: true, cell: ({ local }) => local },
    { title: "Draining", width: "92px", number: true, cell: ({ draining }) => (draining === 0 ? "–" : draining) },
    {
      title: "State",
      width: "170px",
      cell: (row) => {
        const found = differing.get(row.service);
        if (found !== undefined) return <Badge tone="bad" text={`differs on ${nodesText(found)}`} />;
        return row.ready === 0 ? <Badge tone="warn" text="no endpoint" /> : "–";
      },
    },
  ];
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
